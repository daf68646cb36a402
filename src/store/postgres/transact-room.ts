/** How many transactions of users there are at a time: each has a connection of the pool, and the store needs some itself. */

export class Room {
  #taken = 0
  readonly #line: (() => void)[] = []

  /** Resolves to true when there is room, in the order asked; to false if the caller has given up before. */
  enter(size: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    if (this.#taken < size) {
      this.#taken += 1
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const giveUp = (): void => {
        this.#line.splice(this.#line.indexOf(admit), 1)
        resolve(false)
      }
      const admit = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve(true)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      this.#line.push(admit)
    })
  }

  /** The place goes to whoever waits for one. */
  leave(): void {
    const admit = this.#line.shift()
    if (admit === undefined) this.#taken -= 1
    else admit()
  }
}
