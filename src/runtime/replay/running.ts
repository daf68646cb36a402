/** Work of the calls of a pass that goes on (a step's body, a pause between its attempts) and can be told to stop. */

export interface Running {
  /** A function of the user's, which may take any time. */
  readonly isUserCode: boolean
  abort(reason: unknown): void
}

export class Work {
  readonly #running = new Set<Running>()
  readonly #onLeft: () => void
  #userCode = 0

  /** `onLeft` is called whenever something has come to its end. */
  constructor(onLeft: () => void) {
    this.#onLeft = onLeft
  }

  get goesOn(): boolean {
    return this.#running.size > 0
  }

  get runsUserCode(): boolean {
    return this.#userCode > 0
  }

  /** Returns the way out, which may be taken more than once. */
  enter(running: Running): () => void {
    this.#running.add(running)
    if (running.isUserCode) this.#userCode += 1
    return () => {
      if (!this.#running.delete(running)) return
      if (running.isUserCode) this.#userCode -= 1
      this.#onLeft()
    }
  }

  abort(reason: unknown): void {
    for (const running of this.#running) running.abort(reason)
  }
}
