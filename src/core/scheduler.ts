/**
 * Real time and the event loop, for what is not part of the model: turns of the loop, backoff against a
 * database that is gone, the bounds of `shutdown()` and `result({ timeout })`, heartbeats.
 *
 * One object, so that a simulator can own every turn and every real-time wait of the library.
 */
import type { Timer } from './clock.ts'

export interface Scheduler {
  /** Resolves in a later turn of the event loop, when every microtask queued so far has run. */
  turn(): Promise<void>
  /** Calls back in a later turn of the event loop, when every microtask queued so far has run. */
  onTurn(callback: () => void): void
  /**
   * Calls back when every microtask queued so far, and all that follow from them, have run, before anything else that
   * the event loop has to do. To be called from a microtask.
   */
  afterMicrotasks(callback: () => void): void
  /**
   * Calls back after `delayMs` of real time. `background` timers don't keep the process alive.
   * Delays longer than a native timer reaches (24.8 days) are cut to that.
   */
  after(delayMs: number, callback: () => void, options?: { readonly background?: boolean }): Timer
  /** Milliseconds of a clock that never goes back; its zero has no meaning. */
  monotonic(): number
}

class RealScheduler implements Scheduler {
  #nextTurn: Promise<void> | undefined

  /** All who ask before the next turn share it: a commit may answer hundreds of passes at once. */
  turn(): Promise<void> {
    this.#nextTurn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#nextTurn = undefined
        resolve()
      })
    })
    return this.#nextTurn
  }

  onTurn(callback: () => void): void {
    setImmediate(callback)
  }

  afterMicrotasks(callback: () => void): void {
    process.nextTick(callback)
  }

  after(delayMs: number, callback: () => void, options?: { readonly background?: boolean }): Timer {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), 2 ** 31 - 1))
    if (options?.background === true) handle.unref()
    return { cancel: () => clearTimeout(handle) }
  }

  monotonic(): number {
    return performance.now()
  }
}

export const realScheduler: Scheduler = new RealScheduler()
