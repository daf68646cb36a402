/**
 * Transactions of users hold the file's write lock for longer than a turn of the event loop: one of this process at a
 * time, in the order they came, and whatever else writes here waits for its end instead of asking SQLite again and again.
 * It goes before the next transaction, so that neither kind keeps the other out.
 */
import { realScheduler } from '../../core/scheduler.ts'

export class WriteGate {
  #held = false
  readonly #line: (() => void)[] = []
  #writers: (() => void)[] = []

  /** Enters if nobody else is in, or waits to be. */
  tryEnter(): boolean {
    if (this.#held || this.#line.length > 0) return false
    this.#held = true
    return true
  }

  /** Resolves to true when the caller is in; to false if it has given up before. */
  enter(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    if (this.tryEnter()) return Promise.resolve(true)
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

  leave(): void {
    this.#held = false
    const writers = this.#writers
    this.#writers = []
    for (const write of writers) write()
    // Those who write in one turn do so before that.
    realScheduler.onTurn(() => this.#admitNext())
  }

  /** True while somebody is in. */
  get held(): boolean {
    return this.#held
  }

  /** Resolves when nobody is in; what is done at once then is done before anybody else enters. */
  async free(): Promise<void> {
    while (this.#held) await new Promise<void>((resolve) => this.#writers.push(resolve))
  }

  #admitNext(): void {
    if (this.#held) return
    const admit = this.#line.shift()
    if (admit === undefined) return
    this.#held = true
    admit()
  }
}
