/**
 * The turns of the event loop in which a body moves. Each begins with a cause (its start, an outcome delivered to it)
 * and lasts until the body has used up the microtasks that follow: what it calls in them, it calls on every pass.
 */
import type { Scheduler } from '../../core/scheduler.ts'

export class Turns {
  readonly #scheduler: Scheduler
  #moving = false
  #after: (() => void)[] = []

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler
  }

  /** True while the body runs on what follows from the last cause. */
  get moving(): boolean {
    return this.#moving
  }

  /** Calls back when the body moves no more. */
  afterwards(callback: () => void): void {
    this.#after.push(callback)
  }

  /** Resolves when the body moves no more. */
  async move(cause: () => void): Promise<undefined> {
    await this.#scheduler.turn()
    this.#moving = true
    const drained = new Promise<void>((resolve) => this.#scheduler.afterMicrotasks(resolve))
    cause()
    await drained
    this.#moving = false
    const waiting = this.#after
    this.#after = []
    for (const resume of waiting) resume()
  }
}
