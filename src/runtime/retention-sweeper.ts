/**
 * Removes ended runs when their retention is over, and what the store keeps for resends: at start, when the next
 * removal is due, and once an hour. A round is one bounded batch; while batches leave something it comes back at once,
 * with everybody else's turns in between.
 *
 * The store tells when the next removal is due. Of runs that end after that it tells with the next round: one is made
 * as soon as any of them may be due, by the shortest retention there is.
 */
import type { Clock, EpochMs, Timer } from '../core/clock.ts'
import type { EngineEvent } from '../core/engine-events.ts'
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { SweepRequest } from '../store/contract.ts'
import type { Hub } from './hub.ts'
import type { Notice } from './notices.ts'
import { type QueueView, shortestRetentionMs } from './queue-view.ts'
import { type Round, Service, type ServiceFailure } from './service.ts'

export interface RetentionSweeperOptions {
  readonly hub: Pick<Hub, 'notices' | 'sweep'> & { readonly queues: Pick<QueueView, 'changes' | 'shortestRetentionMs'> }
  readonly clock: Clock
  /** Those of this engine: what others run is theirs to remove. */
  readonly definitions: SweepRequest['definitions']
  readonly scheduler: Scheduler
  readonly random: Random
  readonly onEvent: (event: EngineEvent) => void
  readonly onError: (failure: ServiceFailure) => void
}

const HOUR_MS = 3_600_000
/** As many rows as a store may remove in one transaction without holding up those who wait for it. */
const BATCH = 200
/** In real time, runs that end all the time cost a round a second at most, however short their retention is. */
const SHORTEST_WAIT_MS = 1_000

export class RetentionSweeper {
  readonly service: Service
  readonly #options: RetentionSweeperOptions
  readonly #shortestOwnMs: number
  /** The instant of the next round, as far as one is known. */
  #nextAt: EpochMs = Number.POSITIVE_INFINITY
  /** Armed for runs that have ended since the last round. */
  #timer: Timer | undefined
  #stopListening: (() => void) | undefined
  constructor(options: RetentionSweeperOptions) {
    this.#options = options
    const { definitions, clock, scheduler, random, onError } = options
    this.#shortestOwnMs = shortestRetentionMs(definitions)
    const tick = (): Promise<Round> => this.#round()
    this.service = new Service({ name: 'retention-sweeper', tick, clock, scheduler, random, onError })
  }

  start(): void {
    const { hub } = this.#options
    // What is kept for less long now than it was may be due already.
    const stops = [hub.notices.on((notice) => this.#hear(notice)), hub.queues.changes.on(() => this.service.wake())]
    this.#stopListening = () => {
      for (const stop of stops) stop()
    }
    this.service.start()
  }

  stop(): Promise<void> {
    this.#stopListening?.()
    this.#disarm()
    return this.service.stop()
  }

  async #round(): Promise<Round> {
    const { hub, clock, definitions, onEvent } = this.#options
    this.#disarm()
    const { removed, nextAt } = await hub.sweep({ definitions, limit: BATCH })
    if (removed > 0) onEvent({ type: 'runs.removed', count: removed })
    // A round that found nothing is no reason for the next one, whatever the store says is due.
    const dueAt = nextAt === null || (removed === 0 && nextAt <= clock.now()) ? null : nextAt
    this.#nextAt = dueAt ?? Number.POSITIVE_INFINITY
    return { dueAt, pollAfterMs: HOUR_MS }
  }

  #hear(notice: Notice): void {
    if (notice.type !== 'ended' && notice.type !== 'changed') return
    const { clock } = this.#options
    const shortestMs = this.#shortestMs()
    if (shortestMs === Number.POSITIVE_INFINITY || this.#timer !== undefined) return
    const now = clock.now()
    // Kept for its retention, and removed when it is over it.
    const dueAt = now + Math.max(shortestMs + 1, clock.kind === 'real' ? SHORTEST_WAIT_MS : 0)
    if (dueAt >= this.#nextAt && this.#nextAt > now) return
    this.#timer = clock.at(dueAt, () => {
      this.#timer = undefined
      this.service.wake()
    })
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#nextAt = Number.POSITIVE_INFINITY
  }

  /** Infinite if everything is kept for ever. */
  #shortestMs(): number {
    return Math.min(this.#shortestOwnMs, this.#options.hub.queues.shortestRetentionMs)
  }
}
