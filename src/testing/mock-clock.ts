/**
 * A clock that stands still until a test moves it. Everything a store and its engines wait for (delays, leases,
 * timers, retention) moves with it, so that a test of an hour takes milliseconds and gives the same every time.
 *
 * `advance` never jumps over anything: it goes from one due instant to the next, and leaves each only when what was
 * due there has been worked off.
 */
import type { Clock, ClockParticipant, EpochMs, Timer, TimerRank } from '../core/clock.ts'
import type { Duration } from '../core/duration.ts'
import { toMs } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { invariant } from '../core/invariant.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { realScheduler } from '../core/scheduler.ts'

/** 2026-01-01T00:00:00Z. */
const DEFAULT_EPOCH_MS = 1_767_225_600_000

/**
 * How many turns of the event loop without any activity count as quiet: a promise chain of the library that hops from
 * one turn to the next (a committer's lane, then the caller it answers) must not look finished between two hops.
 */
const CALM_TURNS = 4

/**
 * How long, in real time, a user's function may run without anything else happening before `advance` goes on without
 * it: long enough for real work on the host (a file, a local socket), short enough that a function which the test
 * itself holds, until after the `advance`, only costs this much.
 */
const HELD_USER_CODE_MS = 50

/** More rounds of due timers at one instant than this are a loop that would never let the clock go on. */
const MAX_ROUNDS = 10_000

/** After this many turns that were not calm, what is waited for is slow: leave it the processor. */
const EAGER_TURNS = 100

interface ArmedTimer {
  readonly instant: EpochMs
  readonly rank: TimerRank
  readonly callback: () => void
}

/**
 * A clock for tests, given to a store: `memory({ clock })`, `sqlite(path, { clock })`.
 *
 * @example
 * const clock = new MockClock()
 * const engine = new Engine({ store: memory({ clock }), definitions })
 * await clock.advance('1h')
 */
export class MockClock implements Clock {
  readonly kind = 'mock'
  readonly #scheduler: Scheduler = realScheduler
  readonly #participants = new Set<ClockParticipant>()
  /** In arming order. */
  readonly #timers = new Set<ArmedTimer>()
  #now: EpochMs
  #advancing = 0
  #lastAdvance: Promise<void> = Promise.resolve()

  /** Starts at `epochMs`, by default at the beginning of 2026 (UTC). */
  constructor(epochMs: EpochMs = DEFAULT_EPOCH_MS) {
    if (!Number.isSafeInteger(epochMs)) {
      throw new ConfigurationError({ option: 'epochMs', problem: 'it must be a whole number of milliseconds' })
    }
    this.#now = epochMs
  }

  now(): EpochMs {
    return this.#now
  }

  /**
   * Calls back once `advance` has brought the clock to `instant`. A `due` timer for an instant that is here already
   * needs no `advance`: it fires in a later turn of the loop. The other ranks wait for the next visited instant.
   */
  at(instant: EpochMs, callback: () => void, options?: { readonly rank?: TimerRank }): Timer {
    const timer: ArmedTimer = { instant: Math.ceil(instant), rank: options?.rank ?? 'due', callback }
    this.#timers.add(timer)
    if (timer.rank === 'due' && timer.instant <= this.#now) this.#fireSoon(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  join(participant: ClockParticipant): () => void {
    this.#participants.add(participant)
    return () => void this.#participants.delete(participant)
  }

  /**
   * Moves the clock by `duration`, stopping at every instant at which something is due, and resolves when what was due
   * there, the end included, has been worked off. Calls made meanwhile queue up, each starting where the one before
   * ended.
   *
   * A user's function that is still running while nothing else happens is waited for 50 ms of real time; then the clock
   * goes on without it.
   *
   * @throws InvalidDurationError for anything but a duration of zero or more.
   */
  async advance(duration: Duration): Promise<void> {
    const durationMs = Math.ceil(toMs(duration, 'duration'))
    const before = this.#lastAdvance
    const advanced = before.then(() => this.#advanceBy(durationMs))
    // The next call goes on from here even if a callback of this one throws.
    this.#lastAdvance = advanced.catch(() => {})
    this.#advancing += 1
    try {
      await advanced
    } finally {
      this.#advancing -= 1
      if (this.#advancing === 0) this.#fireLeftovers()
    }
  }

  async #advanceBy(durationMs: number): Promise<void> {
    const target = this.#now + durationMs
    await this.#quiescence()
    for (;;) {
      const next = this.#nextDue()
      const isLast = next === undefined || next >= target
      this.#now = Math.max(this.#now, isLast ? target : next)
      await this.#visit()
      if (isLast) return
    }
  }

  /** One instant: renewals, then all that is due until nothing more is, then polls and what they made due. */
  async #visit(): Promise<void> {
    await this.#fire(this.#overdue('renewal'))
    await this.#fireDue()
    await this.#fire(this.#overdue('poll'))
    await this.#fireDue()
  }

  async #fireDue(): Promise<void> {
    let rounds = 0
    for (let due = this.#overdue('due'); due.length > 0; due = this.#overdue('due')) {
      rounds += 1
      invariant(rounds <= MAX_ROUNDS, `something arms a timer for ${this.#now} whenever one fires there`)
      await this.#fire(due)
    }
  }

  async #fire(timers: readonly ArmedTimer[]): Promise<void> {
    if (timers.length === 0) return
    for (const timer of timers) this.#fireOne(timer)
    await this.#quiescence()
  }

  /** A timer that an earlier one called off is gone from the set by now. */
  #fireOne(timer: ArmedTimer): void {
    if (this.#timers.delete(timer)) timer.callback()
  }

  /** While the clock is moving, its rounds fire what is due, each rank in its turn. */
  #fireSoon(timer: ArmedTimer): void {
    this.#scheduler.onTurn(() => {
      if (this.#advancing === 0) this.#fireOne(timer)
    })
  }

  /** What fell due while the last round was being left; also after a callback that threw. */
  #fireLeftovers(): void {
    for (const timer of this.#overdue('due')) this.#fireSoon(timer)
  }

  /** Sorting is stable, so equal instants keep their arming order. */
  #overdue(rank: TimerRank): readonly ArmedTimer[] {
    const overdue = [...this.#timers].filter((timer) => timer.rank === rank && timer.instant <= this.#now)
    return overdue.sort((a, b) => a.instant - b.instant)
  }

  #nextDue(): EpochMs | undefined {
    let next: EpochMs | undefined
    for (const { rank, instant } of this.#timers) {
      if (rank === 'due' && (next === undefined || instant < next)) next = instant
    }
    return next
  }

  async #quiescence(): Promise<void> {
    let activity = this.#activity()
    let calmTurns = 0
    let heldSince: number | undefined
    for (let turns = 0; ; turns++) {
      await (turns < EAGER_TURNS ? this.#scheduler.turn() : this.#pause())
      const latest = this.#activity()
      if (latest !== activity || this.#some((participant) => participant.busy())) {
        activity = latest
        calmTurns = 0
        heldSince = undefined
      } else if (this.#some((participant) => participant.runningUserCode())) {
        heldSince ??= this.#scheduler.monotonic()
        if (this.#scheduler.monotonic() - heldSince >= HELD_USER_CODE_MS) return
      } else if (++calmTurns >= CALM_TURNS) {
        return
      }
    }
  }

  #activity(): number {
    let sum = 0
    for (const participant of this.#participants) sum += participant.activity()
    return sum
  }

  #some(holds: (participant: ClockParticipant) => boolean): boolean {
    for (const participant of this.#participants) if (holds(participant)) return true
    return false
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => void this.#scheduler.after(1, resolve))
  }
}
