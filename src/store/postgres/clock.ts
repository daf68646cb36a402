/**
 * The clock of the database, as far as this host knows it: its own clock, and how much the two differed when the
 * database was last asked. Every instant that is stored or compared comes from the database itself; this clock is for
 * the timers of this process, so that hosts whose clocks are minutes apart agree on what is due.
 */
import type { Clock, EpochMs, Timer } from '../../core/clock.ts'
import { realClock } from '../../core/clock.ts'
import { realScheduler } from '../../core/scheduler.ts'

/** An answer that was on its way for long, or was read late, says too little: it counts only when others are old. */
const TRUSTED_FOR_MS = 10_000
/** The clock of the database was set back. */
const STEP_MS = 2_000
/** While a timer runs, either clock may be set anew. */
const LONGEST_STAGE_MS = 30_000

export class DatabaseClock implements Clock {
  readonly kind = 'real'
  #offset = 0
  #measuredAt = Number.NEGATIVE_INFINITY

  now(): EpochMs {
    return realClock.now() + this.#offset
  }

  /** Tells it what the database's clock has just said. */
  measured(databaseNow: EpochMs): void {
    const offset = databaseNow - realClock.now()
    const at = realScheduler.monotonic()
    const isTrusted = at - this.#measuredAt < TRUSTED_FOR_MS && offset > this.#offset - STEP_MS
    if (offset < this.#offset && isTrusted) return
    this.#offset = offset
    this.#measuredAt = at
  }

  at(instant: EpochMs, callback: () => void): Timer {
    let timer: Timer
    const arm = (): void => {
      const stage = Math.min(realClock.now() + LONGEST_STAGE_MS, instant - this.#offset)
      timer = realClock.at(stage, fire)
    }
    const fire = (): void => {
      if (this.now() < instant) arm()
      else callback()
    }
    arm()
    return { cancel: () => timer.cancel() }
  }

  join(): () => void {
    return () => {}
  }
}
