/**
 * The base of the background services (dispatcher, lease keeper, reaper, sweeper): a loop of bounded rounds, each of
 * which says when to come back.
 *
 * Guarantees: rounds never overlap; a wake-up during a round is followed by one more round, however many there were;
 * a round that fails is reported and repeated, with growing waits, and never stops the service; start, stop, wake
 * and tick settle in any interleaving; a stopped service has no timer. A service keeps no caller's async context.
 */
import { backoffMs } from '../core/backoff.ts'
import type { Clock, EpochMs, Timer, TimerRank } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { detached } from './detached-context.ts'

/** When to come back after a round: at the earlier of the two, and at once for a `dueAt` that is here already. */
export interface Round {
  /** An instant at which there will be something to do; null: none is known. */
  readonly dueAt: EpochMs | null
  /** To look for what nobody told of. */
  readonly pollAfterMs: number
}

export interface ServiceFailure {
  readonly service: string
  readonly error: unknown
}

export interface ServiceOptions {
  readonly name: string
  /** One bounded round. */
  readonly tick: () => Promise<Round>
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly random: Random
  /** Told of the first failure in a row, and of the latest every 30 s while rounds fail. */
  readonly onError: (failure: ServiceFailure) => void
  /** Of the timer of `pollAfterMs`; 'poll' if unset. */
  readonly rank?: Exclude<TimerRank, 'due'>
  /** The fraction by which a real wait of `pollAfterMs` may be shorter or longer; 0 if unset. */
  readonly pollJitter?: number
  /** How long to wait after failed rounds, in real time; 1 s to 60 s if unset. */
  readonly errorDelay?: { readonly baseMs: number; readonly maxMs: number }
}

const ERROR_DELAY = { baseMs: 1_000, maxMs: 60_000 }
const REPORT_EVERY_MS = 30_000

export class Service {
  readonly #options: ServiceOptions
  #started = false
  /** A round has been asked for and has not begun. */
  #wanted = false
  #turnComing = false
  /** The round under way; never rejects. */
  #round: Promise<void> | null = null
  #timers: readonly Timer[] = []
  /** Armed after a failure: until it fires no round begins by itself. */
  #recovery: Timer | null = null
  #failures = 0
  #reportedAt = 0
  #activity = 0

  constructor(options: ServiceOptions) {
    this.#options = options
  }

  /** Begins with a round. */
  start(): void {
    if (this.#started) return
    this.#started = true
    this.wake()
  }

  /** Resolves when the round under way has ended; no other begins. */
  async stop(): Promise<void> {
    this.#started = false
    this.#wanted = false
    this.#failures = 0
    this.#disarm()
    await this.#round
  }

  /** Asks for a round as soon as possible; while rounds fail, not before the wait that follows a failure is over. */
  wake(): void {
    if (!this.#started) return
    this.#wanted = true
    this.#begin()
  }

  /** Runs one round now, after the one under way, started or not. Rejects if it fails. */
  async tick(): Promise<Round> {
    while (this.#round !== null) await this.#round
    return detached(() => this.#run())
  }

  /** True while a round is under way or about to begin. */
  busy(): boolean {
    return this.#round !== null || (this.#turnComing && this.#started)
  }

  /** Grows with every round that begins or ends. */
  activity(): number {
    return this.#activity
  }

  /** At the next turn, so that wake-ups of one turn share a round and no chain of rounds starves the event loop. */
  #begin(): void {
    if (this.#turnComing || this.#round !== null || this.#recovery !== null) return
    this.#turnComing = true
    detached(() =>
      this.#options.scheduler.onTurn(() => {
        this.#turnComing = false
        if (this.#wanted && this.#round === null && this.#recovery === null) this.#run().catch(() => {})
      }),
    )
  }

  async #run(): Promise<Round> {
    let ended = (): void => {}
    this.#round = new Promise((resolve) => {
      ended = resolve
    })
    this.#activity += 1
    this.#wanted = false
    this.#disarm()
    try {
      const round = await this.#options.tick()
      this.#failures = 0
      this.#arm(round)
      return round
    } catch (error) {
      this.#failed(error)
      throw error
    } finally {
      this.#activity += 1
      this.#round = null
      ended()
      if (this.#wanted) this.#begin()
    }
  }

  #arm({ dueAt, pollAfterMs }: Round): void {
    if (!this.#started) return
    const { clock, scheduler, random, rank = 'poll', pollJitter = 0 } = this.#options
    const now = clock.now()
    const again = (): void => this.wake()
    if (dueAt !== null && dueAt <= now) {
      again()
      return
    }
    // A real clock may be set back; what polls must not wait for the instant to come round again.
    const spread = pollJitter === 0 ? 1 : 1 + pollJitter * (2 * random.next() - 1)
    const poll =
      clock.kind === 'mock'
        ? clock.at(now + pollAfterMs, again, { rank })
        : scheduler.after(pollAfterMs * spread, again)
    this.#timers = dueAt === null ? [poll] : [poll, clock.at(dueAt, again, { rank: 'due' })]
  }

  #failed(error: unknown): void {
    const { name, scheduler, random, errorDelay = ERROR_DELAY, onError } = this.#options
    this.#failures += 1
    const now = scheduler.monotonic()
    if (this.#failures === 1 || now - this.#reportedAt >= REPORT_EVERY_MS) {
      this.#reportedAt = now
      try {
        onError({ service: name, error })
      } catch {
        // Whoever listens must not stop the service.
      }
    }
    if (!this.#started) return
    const delayMs = backoffMs({ ...errorDelay, factor: 2, jitter: 0.2 }, this.#failures, random)
    this.#recovery = scheduler.after(delayMs, () => {
      this.#recovery = null
      this.wake()
    })
  }

  #disarm(): void {
    for (const timer of this.#timers) timer.cancel()
    this.#timers = []
    this.#recovery?.cancel()
    this.#recovery = null
  }
}
