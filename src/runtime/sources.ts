/**
 * The queues that a process claims from, and how much room it has for runs of each: what it has in hand, and what a
 * round may claim of one queue, bound a claim here; all else is decided by the store.
 */
import type { ClaimSource } from '../store/contract.ts'
import type { FreedSlot } from './executor.ts'
import type { QueueLoads } from './queue-loads.ts'
import type { QueueView } from './queue-view.ts'
import type { WorkerQueue } from './worker-queue.ts'

export interface SourcesOptions {
  readonly queues: readonly WorkerQueue[]
  readonly loads: QueueLoads
  readonly view: QueueView
  /** Of claims from the internal queue, and from queues without a lease of their own. */
  readonly leaseMs: number
}

/** How much a round claims of the internal queue at most, and of all queues if none of them asks for more. */
const BATCH = 100

export class Sources {
  /** How much a round claims at most, of all of them. */
  readonly batch: number
  readonly #options: SourcesOptions
  readonly #queues: ReadonlyMap<string, WorkerQueue>
  readonly #names: readonly (string | null)[]
  #rounds = 0

  constructor(options: SourcesOptions) {
    this.#options = options
    const listened = options.queues.filter((queue) => queue.listened)
    this.#queues = new Map(listened.map((queue) => [queue.registration.name, queue]))
    this.#names = [null, ...this.#queues.keys()]
    this.batch = Math.max(BATCH, ...listened.map(({ maxTasksPerIteration }) => maxTasksPerIteration))
  }

  /** Those with room now; another comes first in every round, so that none is favoured. */
  open(): readonly ClaimSource[] {
    const first = this.#rounds++ % this.#names.length
    const turned = [...this.#names.slice(first), ...this.#names.slice(0, first)]
    return turned.map((name) => this.#source(name)).filter(({ room }) => room > 0)
  }

  leaseOf(queue: string | null): number {
    return (queue === null ? undefined : this.#queues.get(queue)?.leaseMs) ?? this.#options.leaseMs
  }

  /** True if a round that claimed `count` of a source may have left some that there is room for. */
  leftSome({ queue, room }: ClaimSource, count: number): boolean {
    return count >= room && room === this.#most(queue)
  }

  /**
   * For whom something may be claimable now that was not before the slot came free, or not for a claim that is under
   * way (`claiming`), which had counted it.
   */
  openedFor({ queue, lane }: FreedSlot, claiming: boolean): 'all' | 'us' | 'nobody' {
    if (queue === null) return 'nobody'
    const { loads, view } = this.#options
    const record = view.of(queue)
    if (record?.globalConcurrency !== null) return 'all'
    const limit = this.#queues.get(queue)?.workerConcurrency ?? null
    if (limit === null) return 'nobody'
    const left = record.partitioned ? (loads.lanes(queue).get(lane) ?? 0) : loads.total(queue)
    return claiming || left + 1 >= limit ? 'us' : 'nobody'
  }

  #most(queue: string | null): number {
    return (queue === null ? undefined : this.#queues.get(queue)?.maxTasksPerIteration) ?? BATCH
  }

  #source(queue: string | null): ClaimSource {
    const leaseMs = this.leaseOf(queue)
    const most = this.#most(queue)
    const limit = (queue === null ? undefined : this.#queues.get(queue)?.workerConcurrency) ?? null
    if (queue === null || limit === null) return { queue, leaseMs, room: most, lanes: null }
    const { loads, view } = this.#options
    if (view.of(queue)?.partitioned === true) {
      // Not a copy: while a claim is under way runs only end, and what it is sent again with may know of it.
      return { queue, leaseMs, room: most, lanes: { limit, running: loads.lanes(queue) } }
    }
    return { queue, leaseMs, room: Math.min(most, limit - loads.total(queue)), lanes: null }
  }
}
