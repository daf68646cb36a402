/**
 * Claims what is due and has a handler here, as far as there is room, and begins it. A round claims at most a batch;
 * it comes back at once while batches are full, at the instant when the next run becomes due, when a notice says that
 * something may be claimable or a slot has come free, and as a fallback once a poll interval.
 */
import type { EpochMs } from '../core/clock.ts'
import type { Ids } from '../core/ids.ts'
import type { Random } from '../core/random.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { ClaimedRun } from '../store/contract.ts'
import type { CheckpointRecord } from '../store/records.ts'
import type { Claim } from './delivery.ts'
import type { Executor } from './executor.ts'
import type { Hub } from './hub.ts'
import type { Notice } from './notices.ts'
import { readHistory } from './replay/history.ts'
import { type Round, Service, type ServiceFailure } from './service.ts'

export interface DispatcherOptions {
  readonly hub: Hub
  readonly executor: Executor
  readonly owner: string
  readonly ids: Ids
  readonly scheduler: Scheduler
  readonly random: Random
  readonly leaseMs: number
  /** The definitions that this process has handlers for. */
  readonly definitions: readonly string[]
  readonly onError: (failure: ServiceFailure) => void
}

const BATCH = 100
const POLL_MS = 1_000

export class Dispatcher {
  readonly service: Service
  readonly #options: DispatcherOptions
  /** When the armed round will come, as far as it is armed for a due run. */
  #armedFor: EpochMs = Number.POSITIVE_INFINITY
  /** The last round left something claimable for want of room. */
  #lackedRoom = false
  #stopListening: (() => void) | undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    const { hub, scheduler, random, onError } = options
    const tick = (): Promise<Round> => this.#round()
    this.service = new Service({ name: 'dispatcher', tick, clock: hub.store.clock, scheduler, random, onError })
  }

  start(): void {
    this.#stopListening = this.#options.hub.notices.on((notice) => this.#hear(notice))
    this.service.start()
  }

  stop(): Promise<void> {
    this.#stopListening?.()
    return this.service.stop()
  }

  /** A slot has come free. */
  roomFreed(): void {
    if (this.#lackedRoom) this.service.wake()
  }

  #hear(notice: Notice): void {
    if (notice.type === 'claimable' || notice.type === 'changed') this.service.wake()
    else if (notice.type === 'due' && notice.dueAt < this.#armedFor) this.service.wake()
  }

  async #round(): Promise<Round> {
    const { hub, executor, definitions } = this.#options
    const wanted = executor.reserve(BATCH)
    this.#lackedRoom = wanted < BATCH
    if (wanted === 0) return this.#comeBack(null)
    const claimed = await this.#claim(wanted)
    if (claimed === wanted) return this.#comeBack(wanted < BATCH ? null : hub.store.clock.now())
    return this.#comeBack(await hub.store.nextDue(definitions))
  }

  #comeBack(dueAt: EpochMs | null): Round {
    this.#armedFor = dueAt ?? Number.POSITIVE_INFINITY
    return { dueAt, pollAfterMs: POLL_MS }
  }

  /** Claims into reserved slots and begins what was claimed; gives how many there were. */
  async #claim(slots: number): Promise<number> {
    const { hub, executor, owner, ids, leaseMs, definitions } = this.#options
    let begun = 0
    try {
      const tokens = Array.from({ length: slots }, () => ids.next())
      const claimed = await hub.claim({ owner, tokens, leaseMs, definitions })
      // Nothing was left behind for want of room: slots that come free, these first, are no reason to look again.
      if (claimed.length < slots) this.#lackedRoom = false
      const histories = await this.#histories(claimed).catch((error: unknown) => this.#handBack(claimed, error))
      for (const run of claimed) {
        begun += 1
        executor.begin(claimOf(run, histories.get(run.run.id) ?? []))
      }
      return claimed.length
    } finally {
      executor.unreserve(slots - begun)
    }
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
}

function claimOf({ run, token, input }: ClaimedRun, entries: readonly CheckpointRecord[]): Claim {
  const { id: runId, definition, attempt, deadlineAt, cancelRequested } = run
  return { runId, definition, token, attempt, input, history: readHistory(entries), deadlineAt, cancelRequested }
}
