/**
 * Keeps the claims of this engine that have leases of one length alive: renews each at a third of its lease, from the
 * claim until its delivery has ended, by the store's lease thread where it has one (which goes on while the event loop
 * is blocked), else in this thread. The thread is started for the first claim.
 *
 * Renewal goes by token list, so a claim that was taken away is found lost and never revived.
 */
import type { EpochMs, Timer } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { HeldClaim, LeaseThread, RenewOutcome, Store } from '../store/contract.ts'
import type { Committer } from './committer/committer.ts'
import { type Round, Service, type ServiceFailure } from './service.ts'

export interface LeaseKeeperOptions {
  readonly store: Pick<Store, 'clock' | 'leaseThread'>
  readonly committer: Pick<Committer, 'renew'>
  readonly scheduler: Scheduler
  readonly random: Random
  /** 30 s if unset. */
  readonly leaseMs?: number
  /** How long the event loop may be blocked before its claims are given up; 5 min if unset. */
  readonly maxBlockedMs?: number
  /** The token holds nothing any more, and is no longer kept: abort, write nothing. */
  readonly onLost: (token: string) => void
  /** The run has been asked to cancel. Called again at each renewal. */
  readonly onCancelRequested: (token: string) => void
  readonly onError: (failure: ServiceFailure) => void
}

interface Held {
  readonly runId: string
  /** When the lease was last known to begin, by the store's clock. */
  readonly since: EpochMs
}

export const LEASE_MS = 30_000
const MAX_BLOCKED_MS = 300_000
const BATCH = 1_000

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #leaseMs: number
  readonly #service: Service
  /** By token; in order of `since` as long as the clock does not step back. */
  readonly #held = new Map<string, Held>()
  #thread: LeaseThread | null = null
  #started = false
  /** No lease thread has been asked for, or the last one was stopped. */
  #threadless = true
  #expiry: { readonly at: EpochMs; readonly timer: Timer } | null = null

  constructor(options: LeaseKeeperOptions) {
    const { store, scheduler, random, onError, leaseMs = LEASE_MS } = options
    this.#options = options
    this.#leaseMs = leaseMs
    this.#service = new Service({
      name: 'lease-keeper',
      tick: () => this.#renewRound(),
      clock: store.clock,
      scheduler,
      random,
      onError,
      rank: 'renewal',
      // A lease must survive several failures in a row.
      errorDelay: { baseMs: Math.min(500, leaseMs / 12), maxMs: leaseMs / 6 },
    })
  }

  start(): void {
    if (this.#started) return
    this.#started = true
    if (this.#held.size > 0) this.#startThread()
    this.#armExpiry()
    this.#service.start()
  }

  /** Renews nothing any more. Claims that are still held run out, unless they have been settled. */
  async stop(): Promise<void> {
    const thread = this.#thread
    this.#started = false
    this.#thread = null
    this.#threadless = true
    this.#armExpiry()
    await Promise.all([this.#service.stop(), thread?.stop()])
  }

  /** To be called before the claimed run's handler, which may block the event loop from its first line. */
  hold(runId: string, token: string): void {
    this.#held.set(token, { runId, since: this.#options.store.clock.now() })
    if (this.#started && this.#threadless) this.#startThread()
    else this.#thread?.hold([{ runId, token }])
    this.#armExpiry()
  }

  /** Of a claim that was settled, lost or given up. */
  drop(token: string): void {
    if (!this.#held.delete(token)) return
    this.#thread?.drop([token])
    this.#armExpiry()
  }

  /** Claims held. */
  get size(): number {
    return this.#held.size
  }

  /** One round of renewal. */
  tick(): Promise<Round> {
    return this.#service.tick()
  }

  /**
   * Renews what has outlived its lease, as after the host was asleep or its clock was set: to be called before
   * anything that takes expired claims away, so that a process doesn't take its own.
   */
  async renewOverdue(): Promise<void> {
    const now = this.#options.store.clock.now()
    await this.#renew((held) => held.since + this.#leaseMs <= now)
  }

  busy(): boolean {
    return this.#service.busy()
  }

  activity(): number {
    return this.#service.activity()
  }

  async #renewRound(): Promise<Round> {
    // Most claims live for milliseconds: those younger than this can wait for the next round.
    const youngMs = this.#leaseMs / 6
    const now = this.#options.store.clock.now()
    if (this.#thread === null) await this.#renew(({ since }) => now - since >= youngMs || since > now)
    return { dueAt: null, pollAfterMs: this.#leaseMs / 3 }
  }

  /** A batch that fails doesn't keep the others from their renewal. */
  async #renew(isDue: (held: Held) => boolean): Promise<void> {
    const due: HeldClaim[] = []
    for (const [token, held] of this.#held) if (isDue(held)) due.push({ runId: held.runId, token })
    const failures: unknown[] = []
    for (let from = 0; from < due.length; from += BATCH) {
      const batch = due.slice(from, from + BATCH)
      const since = this.#options.store.clock.now()
      try {
        const outcome = await this.#options.committer.renew(batch, this.#leaseMs)
        this.#renewed(batch, since, outcome)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  #renewed(claims: Iterable<HeldClaim>, since: EpochMs, { lost, cancelRequested }: RenewOutcome): void {
    for (const { runId, token } of claims) {
      // Deleted first, to keep the order of `since`.
      if (this.#held.delete(token)) this.#held.set(token, { runId, since })
    }
    for (const token of lost) {
      if (!this.#held.has(token)) continue
      this.drop(token)
      this.#tell(() => this.#options.onLost(token))
    }
    for (const token of cancelRequested) {
      if (this.#held.has(token)) this.#tell(() => this.#options.onCancelRequested(token))
    }
    this.#armExpiry()
  }

  #tell(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      this.#options.onError({ service: 'lease-keeper', error })
    }
  }

  #startThread(): void {
    this.#threadless = false
    this.#tell(() => {
      this.#thread = this.#newThread()
      this.#thread?.hold(this.#claims())
    })
  }

  #newThread(): LeaseThread | null {
    const { store, maxBlockedMs = MAX_BLOCKED_MS } = this.#options
    const thread = store.leaseThread({
      leaseMs: this.#leaseMs,
      maxBlockedMs,
      onRenewed: (outcome) => {
        if (this.#thread === thread) this.#renewed(this.#claims(), store.clock.now(), outcome)
      },
      onFailed: (error) => {
        if (this.#thread !== thread) return
        this.#thread = null
        this.#tell(() => this.#options.onError({ service: 'lease-keeper', error }))
        this.#service.wake()
      },
    })
    return thread
  }

  #claims(): readonly HeldClaim[] {
    return Array.from(this.#held, ([token, { runId }]) => ({ runId, token }))
  }

  /**
   * On a mock clock, the end of a live claim's lease is an instant that the clock must not jump over: renewals
   * run there first. The timer itself has nothing to do.
   */
  #armExpiry(): void {
    const { clock } = this.#options.store
    if (clock.kind !== 'mock') return
    const earliest = this.#started ? this.#held.values().next().value : undefined
    const at = earliest === undefined ? null : earliest.since + this.#leaseMs
    if (this.#expiry?.at === at) return
    this.#expiry?.timer.cancel()
    this.#expiry = null
    if (at === null || at <= clock.now()) return
    const timer = clock.at(at, () => {
      this.#expiry = null
      this.#armExpiry()
    })
    this.#expiry = { at, timer }
  }
}
