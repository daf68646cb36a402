/**
 * The memory store: for tests, and the reference model of the contract, so it is plain maps and obvious code.
 *
 * Nothing survives the process. Within it, the data belongs to the object: it is there again after `close()` and
 * `open()`, and several engines may share one object, each closing it when it is done without hurting the others.
 * Every call does its work at once, before its promise is returned.
 */
import type { Clock, EpochMs } from '../../core/clock.ts'
import { realClock } from '../../core/clock.ts'
import { ConfigurationError, StoreClosedError } from '../../core/errors.ts'
import { checkClock, checkOptions } from '../../core/options.ts'
import { commit } from '../apply/commands.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Command,
  HeldClaim,
  ListRequest,
  NewQueue,
  Outcome,
  QueueChange,
  QueueStats,
  ReclaimOutcome,
  ReclaimRequest,
  RenewOutcome,
  Situation,
  Store,
  StoreCapabilities,
  SweepOutcome,
  SweepRequest,
} from '../contract.ts'
import type {
  AttemptRecord,
  CheckpointRecord,
  EncodedValue,
  Ending,
  KvRecord,
  ProcessRecord,
  QueueRecord,
  RunRecord,
} from '../records.ts'
import { claim } from './claims.ts'
import { byCodePoints } from './kv.ts'
import { reclaim, renew, tokenOf } from './leases.ts'
import { changeQueue, queueStats, registerQueues } from './queues.ts'
import { sweep } from './retention.ts'
import { situation } from './situation.ts'
import { Tables } from './tables.ts'

export interface MemoryOptions {
  /** Default: the host's clock. */
  readonly clock?: Clock
}

/** A store that keeps everything in this process. */
export function memory(options: MemoryOptions = {}): Store {
  checkOptions('memory', options, ['clock'])
  if (options.clock !== undefined) checkClock('memory.clock', options.clock)
  return new MemoryStore(options.clock ?? realClock)
}

class MemoryStore implements Store {
  readonly name = 'memory'
  readonly capabilities: StoreCapabilities = { durable: false, shared: false }
  readonly #data = new Tables()
  #clock: Clock
  #opened = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get clock(): Clock {
    return this.#clock
  }

  setClock(clock: Clock): void {
    if (clock === this.#clock) return
    if (this.#opened) {
      throw new ConfigurationError({ option: 'clock', problem: 'the store has been opened with another clock already' })
    }
    this.#clock = clock
  }

  async open(): Promise<void> {
    this.#opened = true
  }

  /** There is nothing to let go of; other engines may still be using the store. */
  async close(): Promise<void> {}

  /** There is no schema. */
  async migrate(): Promise<void> {}

  async commit(commands: readonly Command[]): Promise<readonly Outcome[]> {
    return commit(this.#tables(), commands, this.#now())
  }

  async claim(request: ClaimRequest): Promise<ClaimOutcome> {
    return claim(this.#tables(), request, this.#now())
  }

  async renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome> {
    return renew(this.#tables(), claims, leaseMs, this.#now())
  }

  async reclaim(request: ReclaimRequest): Promise<ReclaimOutcome> {
    return reclaim(this.#tables(), request, this.#now())
  }

  async sweep(request: SweepRequest): Promise<SweepOutcome> {
    return sweep(this.#tables(), request, this.#now())
  }

  async registerQueues(queues: readonly NewQueue[]): Promise<readonly QueueRecord[]> {
    return registerQueues(this.#tables(), queues, this.#now())
  }

  async changeQueue(name: string, change: QueueChange): Promise<QueueRecord | undefined> {
    return changeQueue(this.#tables(), name, change, this.#now())
  }

  async registerProcess(process: Omit<ProcessRecord, 'registeredAt'>): Promise<void> {
    const { definitions, queues } = process
    this.#tables().processes.set(
      process.owner,
      Object.freeze({
        ...process,
        definitions: [...definitions],
        queues: [...queues],
        registeredAt: this.#now(),
      }),
    )
  }

  async removeProcesses(owners: readonly string[]): Promise<void> {
    const { runs, processes } = this.#tables()
    for (const owner of owners) if (runs.claims.of(owner).size === 0) processes.delete(owner)
  }

  async processes(): Promise<readonly ProcessRecord[]> {
    return [...this.#tables().processes.values()]
  }

  async runs(ids: readonly string[]): Promise<readonly (RunRecord | undefined)[]> {
    const { runs } = this.#tables()
    return ids.map((id) => runs.get(id))
  }

  async inputs(ids: readonly string[]): Promise<readonly (EncodedValue | undefined)[]> {
    const { inputs } = this.#tables()
    return ids.map((id) => inputs.get(id))
  }

  async endings(ids: readonly string[]): Promise<ReadonlyMap<string, Ending | 'missing'>> {
    const { runs, endings } = this.#tables()
    const found = new Map<string, Ending | 'missing'>()
    for (const id of ids) {
      const ending = runs.get(id) === undefined ? 'missing' : endings.get(id)
      if (ending !== undefined) found.set(id, ending)
    }
    return found
  }

  async list(request: ListRequest): Promise<readonly RunRecord[]> {
    const { status, definition, queue, limit, beforeSeq } = request
    const found: RunRecord[] = []
    for (const run of this.#tables().runs.newest(beforeSeq)) {
      if (found.length >= limit) break
      if (status !== undefined && !status.includes(run.status)) continue
      if (definition !== undefined && run.definition !== definition) continue
      if (queue !== undefined && run.queue !== queue) continue
      found.push(run)
    }
    return found
  }

  async histories(ids: readonly string[]): Promise<ReadonlyMap<string, readonly CheckpointRecord[]>> {
    const tables = this.#tables()
    return new Map(ids.map((id) => [id, tables.history(id)]))
  }

  async attempts(id: string): Promise<readonly AttemptRecord[]> {
    return this.#tables().attempts(id)
  }

  async cancelRequests(owner: string): Promise<readonly HeldClaim[]> {
    const { runs } = this.#tables()
    return runs.all(runs.claims.askedToCancel(owner)).map((run) => ({ runId: run.id, token: tokenOf(run) }))
  }

  async signals(
    waits: readonly { readonly runId: string; readonly position: number }[],
  ): Promise<ReadonlyMap<number, EncodedValue>> {
    const tables = this.#tables()
    const found = new Map<number, EncodedValue>()
    for (const [index, { runId, position }] of waits.entries()) {
      const wait = tables.waits.at(runId, position)
      if (wait?.state === 'signalled' && wait.payload !== null) found.set(index, wait.payload)
    }
    return found
  }

  async queues(): Promise<readonly QueueRecord[]> {
    return [...this.#tables().queues.values()].toSorted((a, b) => byCodePoints(a.name, b.name))
  }

  async queueStats(name: string): Promise<QueueStats> {
    return queueStats(this.#tables(), name)
  }

  async situation(id: string): Promise<Situation | undefined> {
    return situation(this.#tables(), id, this.#now())
  }

  async values(keys: readonly string[]): Promise<readonly (EncodedValue | undefined)[]> {
    const { kv } = this.#tables()
    return keys.map((key) => kv.get(key))
  }

  async scan(prefix: string, after: string | null, limit: number): Promise<readonly KvRecord[]> {
    return this.#tables().kv.scan(prefix, after, limit)
  }

  async nextExpiry(): Promise<EpochMs | null> {
    return this.#tables().runs.claims.nextExpiry()
  }

  /** Never calls back: changes made in this process are announced by the runtime, and there are no others. */
  watch(_onChange: () => void): () => void {
    return () => {}
  }

  leaseThread(): null {
    return null
  }

  #tables(): Tables {
    if (!this.#opened) throw new StoreClosedError({ store: this.name })
    return this.#data
  }

  #now(): EpochMs {
    return this.#clock.now()
  }
}
