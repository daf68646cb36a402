/** The clock of a conformance test: it stands still until the test moves it. */
import type { Clock, EpochMs, Timer } from '../../core/clock.ts'

/** Far beyond 32 bits, and not a round number, so that an instant that was cut or rounded shows. */
const START_MS = 1_800_000_000_123

interface Armed {
  readonly instant: EpochMs
  readonly callback: () => void
}

export class ManualClock implements Clock {
  readonly kind = 'mock'
  readonly #armed = new Set<Armed>()
  #now: EpochMs = START_MS

  now(): EpochMs {
    return this.#now
  }

  /** Moves on by `ms` and calls back what has come due. */
  pass(ms: number): void {
    this.#now += ms
    for (const timer of [...this.#armed]) {
      if (timer.instant <= this.#now && this.#armed.delete(timer)) timer.callback()
    }
  }

  at(instant: EpochMs, callback: () => void): Timer {
    const timer: Armed = { instant, callback }
    this.#armed.add(timer)
    return { cancel: () => void this.#armed.delete(timer) }
  }

  join(): () => void {
    return () => {}
  }
}
