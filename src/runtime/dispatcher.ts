/**
 * Claims what is due and has a handler here, from all queues of this process in one call, as far as there is room, and
 * begins it. A round comes back at once while it leaves something that there is room for, at the instant when something
 * becomes claimable by time, when a notice says that something may be claimable, when a slot has come free that
 * something may have waited for, and as a fallback once a poll interval.
 */
import type { EpochMs } from '../core/clock.ts'
import type { Ids } from '../core/ids.ts'
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { ClaimableDefinition, ClaimedRun, ClaimSource } from '../store/contract.ts'
import type { CheckpointRecord } from '../store/records.ts'
import type { Claim } from './delivery.ts'
import type { Executor, FreedSlot } from './executor.ts'
import type { Hub } from './hub.ts'
import type { Notice } from './notices.ts'
import { readHistory } from './replay/history.ts'
import { type Round, Service, type ServiceFailure } from './service.ts'
import { Sources } from './sources.ts'
import type { WorkerQueue } from './worker-queue.ts'

export interface DispatcherOptions {
  readonly hub: Hub
  readonly executor: Executor
  readonly owner: string
  readonly ids: Ids
  readonly scheduler: Scheduler
  readonly random: Random
  /** The definitions that this process has handlers for. */
  readonly definitions: readonly ClaimableDefinition[]
  readonly queues: readonly WorkerQueue[]
  readonly version: string | null
  readonly onError: (failure: ServiceFailure) => void
}

/** Without queues; one round serves all, at the shortest interval that any of them asks for. */
const POLLING = { baseMs: 1_000, maxMs: 60_000 }
/** Processes that were started together should not poll together. */
const POLL_JITTER = 0.05

export class Dispatcher {
  readonly service: Service
  readonly #options: DispatcherOptions
  readonly #sources: Sources
  readonly #pollMs: number
  /** When the armed round will come, as far as it is armed for an instant. */
  #armedFor: EpochMs = Number.POSITIVE_INFINITY
  /** The last round may have left something as this process has all the runs in hand that it may have. */
  #lackedSlots = false
  /** From the count of what is in hand until what was claimed is. */
  #claiming = false
  #stopListening: (() => void) | undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    const { hub, executor, queues, scheduler, random, onError } = options
    this.#sources = new Sources({ queues, loads: executor.loads, view: hub.queues, leaseMs: hub.leaseMs })
    const listened = queues.filter((queue) => queue.listened)
    const asked = listened.map(({ basePollingMs }) => basePollingMs)
    this.#pollMs = asked.length === 0 ? POLLING.baseMs : Math.min(...asked)
    this.service = new Service({
      ...{ name: 'dispatcher', clock: hub.store.clock, scheduler, random, onError },
      tick: () => this.#round(),
      pollJitter: POLL_JITTER,
      errorDelay: {
        baseMs: this.#pollMs,
        maxMs: Math.max(POLLING.maxMs, ...listened.map(({ maxPollingMs }) => maxPollingMs)),
      },
    })
  }

  start(): void {
    this.#stopListening = this.#options.hub.notices.on((notice) => this.#hear(notice))
    this.service.start()
  }

  stop(): Promise<void> {
    this.#stopListening?.()
    return this.service.stop()
  }

  /** A slot has come free; null: one that nothing had come for. */
  roomFreed(freed: FreedSlot | null): void {
    const opened = freed === null ? 'nobody' : this.#sources.openedFor(freed, this.#claiming)
    if (opened === 'all') this.#options.hub.notices.emit({ type: 'claimable' })
    else if (opened === 'us' || this.#lackedSlots) this.service.wake()
  }

  #hear(notice: Notice): void {
    if (notice.type === 'claimable' || notice.type === 'changed') this.service.wake()
    else if (notice.type === 'due' && notice.dueAt < this.#armedFor) this.service.wake()
  }

  async #round(): Promise<Round> {
    const { hub, executor } = this.#options
    // Nothing is armed while a round is under way: what becomes due meanwhile asks for one more.
    this.#armedFor = Number.POSITIVE_INFINITY
    hub.queues.freshen()
    const sources = this.#sources.open()
    const wanted = Math.min(
      this.#sources.batch,
      sources.reduce((sum, { room }) => sum + room, 0),
    )
    const slots = executor.reserve(wanted)
    this.#lackedSlots = slots < wanted
    if (slots === 0) return this.#comeBack(null)
    return this.#comeBack(await this.#claim(sources, slots))
  }

  #comeBack(dueAt: EpochMs | null): Round {
    this.#armedFor = dueAt ?? Number.POSITIVE_INFINITY
    return { dueAt, pollAfterMs: this.#pollMs }
  }

  /** Claims into reserved slots and begins what was claimed; gives when to come back for more. */
  async #claim(sources: readonly ClaimSource[], slots: number): Promise<EpochMs | null> {
    const { hub, executor, owner, ids, definitions, version } = this.#options
    let begun = 0
    this.#claiming = true
    try {
      const tokens = Array.from({ length: slots }, () => ids.next())
      const askedAt = hub.store.clock.now()
      const { runs, nextAt } = await hub.claim({ owner, tokens, definitions, version, sources })
      const leftSome = this.#leftSome(sources, runs, slots)
      const histories = await this.#histories(runs).catch((error: unknown) => this.#handBack(runs, error))
      for (const claimed of runs) {
        begun += 1
        executor.begin(this.#claimOf(claimed, histories.get(claimed.run.id) ?? []))
      }
      if (leftSome) return hub.store.clock.now()
      // An answer of "now" that finds nothing would never rest.
      return runs.length === 0 && nextAt !== null && nextAt <= askedAt ? null : nextAt
    } finally {
      this.#claiming = false
      executor.unreserve(slots - begun)
    }
  }

  /** True if something may be left that there is room for. */
  #leftSome(sources: readonly ClaimSource[], runs: readonly ClaimedRun[], slots: number): boolean {
    const counts = new Map<string | null, number>()
    for (const { run } of runs) counts.set(run.queue, (counts.get(run.queue) ?? 0) + 1)
    if (runs.length === slots) return !this.#lackedSlots
    // Slots that come free, the unused ones first, are no reason to look again.
    this.#lackedSlots = false
    return sources.some((source) => this.#sources.leftSome(source, counts.get(source.queue) ?? 0))
  }

  /** A claim that can't be begun is no crash: it is given back, and the round fails. */
  async #handBack(claimed: readonly ClaimedRun[], error: unknown): Promise<never> {
    const { hub } = this.#options
    const settlement = { type: 'release' } as const
    const releases = claimed.map(({ run, token }) =>
      hub.submit({ type: 'settle', runId: run.id, token, entries: [], settlement }),
    )
    await Promise.allSettled(releases)
    throw error
  }

  async #histories(claimed: readonly ClaimedRun[]): Promise<ReadonlyMap<string, readonly CheckpointRecord[]>> {
    const resumed = claimed.filter(({ run }) => run.deliveries > 1).map(({ run }) => run.id)
    return resumed.length === 0 ? new Map() : this.#options.hub.store.histories(resumed)
  }

  /** Written out, as each delivery makes one: spreading costs several times as much. */
  #claimOf({ run, token, input }: ClaimedRun, entries: readonly CheckpointRecord[]): Claim {
    return {
      runId: run.id,
      definition: run.definition,
      queue: run.queue,
      // By its key also on a plain queue, which may become a partitioned one while the run is in hand.
      lane: run.partitionKey ?? '',
      token,
      leaseMs: this.#sources.leaseOf(run.queue),
      epoch: run.epoch,
      attempt: run.attempt,
      input,
      history: readHistory(entries),
      deadlineAt: run.deadlineAt,
      cancelRequested: run.cancelRequested,
    }
  }
}
