/**
 * Sends a store call again for as long as the store is unavailable: an accepted command is not given up because
 * a database restarts. Waits in real time, longer each time, up to a second.
 *
 * Tells of trouble when it begins, once per period while it lasts, and when it is over, so that one log line stands
 * for a thousand attempts.
 */
import type { Timer } from '../../core/clock.ts'
import { PerdureError } from '../../core/errors.ts'
import type { Random } from '../../core/random.ts'
import type { Scheduler } from '../../core/scheduler.ts'

export type LaneName = 'commit' | 'claim' | 'lease'

export interface Trouble {
  readonly lane: LaneName
  readonly phase: 'begun' | 'lasting' | 'over'
  /** What the store said last. */
  readonly error: unknown
  /** When it began, by `Scheduler.monotonic`. */
  readonly since: number
}

export interface ResenderOptions {
  readonly lane: LaneName
  readonly scheduler: Scheduler
  readonly random: Random
  readonly onTrouble: (trouble: Trouble) => void
}

const FIRST_DELAY_MS = 10
const LONGEST_DELAY_MS = 1_000
const REPORT_EVERY_MS = 30_000

/** For one call at a time. */
export class Resender {
  readonly #options: ResenderOptions
  #trouble: { readonly since: number; readonly error: unknown; readonly reportedAt: number } | null = null
  #pause: { readonly timer: Timer; readonly end: () => void } | null = null
  #abandoned = false
  #attempts = 0

  constructor(options: ResenderOptions) {
    this.#options = options
  }

  /** Store calls begun and ended. */
  get activity(): number {
    return this.#attempts
  }

  /** What the store said last, while there is trouble. */
  get lastError(): unknown {
    return this.#trouble?.error
  }

  /** Rejects with what the store refuses, or with its last trouble once abandoned. */
  async run<T>(attempt: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        this.#attempts += 1
        const result = await attempt()
        this.#over()
        return result
      } catch (error) {
        if (!isTrouble(error)) {
          this.#over()
          throw error
        }
        this.#report(error)
        await this.#wait(failures)
        if (this.#abandoned) throw error
      } finally {
        this.#attempts += 1
      }
    }
  }

  /** Sends nothing again from now on. */
  abandon(): void {
    this.#abandoned = true
    this.#pause?.timer.cancel()
    this.#pause?.end()
  }

  async #wait(failures: number): Promise<void> {
    if (this.#abandoned) return
    const { scheduler, random } = this.#options
    const full = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(failures, 16))
    await new Promise<void>((end) => {
      this.#pause = { timer: scheduler.after(full * (0.5 + random.next() / 2), end), end }
    })
    this.#pause = null
  }

  #report(error: unknown): void {
    const now = this.#options.scheduler.monotonic()
    const since = this.#trouble?.since ?? now
    const reportedAt = this.#trouble?.reportedAt
    const due = reportedAt === undefined || now - reportedAt >= REPORT_EVERY_MS
    this.#trouble = { since, error, reportedAt: due ? now : reportedAt }
    if (due)
      this.#tell({ lane: this.#options.lane, phase: reportedAt === undefined ? 'begun' : 'lasting', error, since })
  }

  #over(): void {
    if (this.#trouble === null) return
    const { error, since } = this.#trouble
    this.#trouble = null
    this.#tell({ lane: this.#options.lane, phase: 'over', error, since })
  }

  #tell(trouble: Trouble): void {
    try {
      this.#options.onTrouble(trouble)
    } catch {
      // Whoever listens must not break the lane that everyone's writes go through.
    }
  }
}

/** Of the store, and it passes. */
export function isTrouble(error: unknown): boolean {
  return PerdureError.is(error) && error.retryable
}
