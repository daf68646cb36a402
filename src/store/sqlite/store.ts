/** The store on one SQLite file: what the contract asks, each call as one read or one transaction. */
import { resolve } from 'node:path'
import type { Clock, EpochMs } from '../../core/clock.ts'
import { ConfigurationError, StoreClosedError } from '../../core/errors.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Command,
  HeldClaim,
  LeaseThread,
  LeaseThreadOptions,
  ListRequest,
  NewQueue,
  Outcome,
  QueueChange,
  QueueStats,
  ReclaimOutcome,
  ReclaimRequest,
  RenewOutcome,
  Situation,
  SqlTransactions,
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
import { currentAttempt } from '../transitions.ts'
import { pastAttempts } from './attempts.ts'
import { findHistory } from './checkpoints.ts'
import { claim, lookForNothing } from './claim/claim.ts'
import { applyBatch } from './commands.ts'
import { Database } from './database.ts'
import { findValue, scanValues } from './kv.ts'
import { startLeaseThread } from './lease-thread-host.ts'
import * as leases from './leases.ts'
import { listRuns } from './listing.ts'
import * as processes from './processes.ts'
import * as queues from './queues.ts'
import * as retention from './retention.ts'
import { findEnding, findInput, findRun } from './runs.ts'
import { situation } from './situation.ts'
import { SqliteTransactions } from './transact.ts'
import { findSignal } from './waits.ts'
import { Wal } from './wal.ts'
import { Watch } from './watch.ts'

/** Ten thousand awaited results are one call; the event loop gets its turns in between. */
const READ_AT_A_TIME = 500

/** What lives from `open` to `close`. */
interface Opened {
  readonly database: Database
  readonly watch: Watch
  readonly wal: Wal
  readonly leaseThreads: Set<LeaseThread>
}

export class SqliteStore implements Store {
  readonly name: string
  readonly capabilities: StoreCapabilities = { durable: true, shared: true }
  readonly transactions: SqlTransactions
  readonly #transactions: SqliteTransactions
  readonly #path: string
  #clock: Clock
  #everOpened = false
  #opened: Opened | undefined
  /** The last `open` or `close`, which the next one waits for. */
  #settled: Promise<void> = Promise.resolve()

  constructor(path: string, clock: Clock) {
    this.name = `sqlite ${path}`
    // The file is opened later, and by more than one thread: a process that has changed its directory means the same.
    this.#path = resolve(path)
    this.#clock = clock
    this.#transactions = new SqliteTransactions({
      database: () => this.#require().database,
      onWritten: () => this.#opened?.wal.written(),
    })
    this.transactions = this.#transactions
  }

  get clock(): Clock {
    return this.#clock
  }

  setClock(clock: Clock): void {
    if (clock === this.#clock) return
    if (this.#everOpened) {
      throw new ConfigurationError({ option: 'clock', problem: 'the store has been opened with another clock already' })
    }
    this.#clock = clock
  }

  open(): Promise<void> {
    this.#everOpened = true
    return this.#inTurn(async () => {
      if (this.#opened !== undefined) return
      const database = await Database.open({ path: this.#path, store: this.name, clock: this.#clock })
      this.#opened = { database, watch: new Watch(database), wal: new Wal(database), leaseThreads: new Set() }
    })
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      const opened = this.#opened
      if (opened === undefined) return
      this.#transactions.close(this.name)
      this.#opened = undefined
      opened.watch.stop()
      opened.wal.close()
      for (const thread of opened.leaseThreads) await thread.stop()
      // The last connection to close moves the log into the database and removes it.
      opened.database.close()
    })
  }

  async migrate(): Promise<void> {
    const database = await Database.open({ path: this.#path, store: this.name, clock: this.#clock })
    database.close()
  }

  async commit(commands: readonly Command[]): Promise<readonly Outcome[]> {
    this.#require()
    if (commands.length === 0) return []
    return await this.#write((database) => applyBatch(database, commands))
  }

  async claim(request: ClaimRequest): Promise<ClaimOutcome> {
    const nothing = await this.#read((database) => lookForNothing(database, request))
    return nothing ?? (await this.#write((database) => claim(database, request)))
  }

  async renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome> {
    this.#require()
    if (claims.length === 0) return { lost: [], cancelRequested: [] }
    return await this.#write((database) => leases.renew(database, claims, leaseMs))
  }

  async reclaim(request: ReclaimRequest): Promise<ReclaimOutcome> {
    if (!(await this.#read((database) => leases.isReclaimable(database, request)))) return { runs: [], rippled: false }
    return await this.#write((database) => leases.reclaim(database, request))
  }

  async sweep(request: SweepRequest): Promise<SweepOutcome> {
    const nothing = await this.#read((database) => retention.lookForNothing(database, request))
    return nothing ?? (await this.#write((database) => retention.sweep(database, request)))
  }

  async registerQueues(asked: readonly NewQueue[]): Promise<readonly QueueRecord[]> {
    this.#require()
    if (asked.length === 0) return []
    return await this.#write((database) => queues.registerQueues(database, asked))
  }

  async changeQueue(name: string, change: QueueChange): Promise<QueueRecord | undefined> {
    return await this.#write((database) => queues.changeQueue(database, name, change))
  }

  async registerProcess(process: Omit<ProcessRecord, 'registeredAt'>): Promise<void> {
    await this.#write((database) => processes.registerProcess(database, process))
  }

  async removeProcesses(owners: readonly string[]): Promise<void> {
    this.#require()
    if (owners.length === 0) return
    await this.#write((database) => processes.removeProcesses(database, owners))
  }

  async processes(): Promise<readonly ProcessRecord[]> {
    return await this.#read(processes.processes)
  }

  async runs(ids: readonly string[]): Promise<readonly (RunRecord | undefined)[]> {
    return await this.#read((database) => ids.map((id) => findRun(database, id)))
  }

  async inputs(ids: readonly string[]): Promise<readonly (EncodedValue | undefined)[]> {
    return await this.#read((database) => ids.map((id) => findInput(database, id)))
  }

  async endings(ids: readonly string[]): Promise<ReadonlyMap<string, Ending | 'missing'>> {
    const endings = new Map<string, Ending | 'missing'>()
    for (let from = 0; from < ids.length; from += READ_AT_A_TIME) {
      if (from > 0) await realScheduler.turn()
      await this.#read((database) => {
        for (const id of ids.slice(from, from + READ_AT_A_TIME)) {
          const ending = findEnding(database, id)
          if (ending !== undefined) endings.set(id, ending)
        }
      })
    }
    return endings
  }

  async list(request: ListRequest): Promise<readonly RunRecord[]> {
    return await this.#read((database) => listRuns(database, request))
  }

  async histories(ids: readonly string[]): Promise<ReadonlyMap<string, readonly CheckpointRecord[]>> {
    return await this.#read((database) => new Map(ids.map((id) => [id, findHistory(database, id)])))
  }

  async attempts(id: string): Promise<readonly AttemptRecord[]> {
    return await this.#read((database) => {
      const run = findRun(database, id)
      if (run === undefined) return []
      const current = currentAttempt(run)
      return current === null ? pastAttempts(database, run.seq) : [...pastAttempts(database, run.seq), current]
    })
  }

  async cancelRequests(owner: string): Promise<readonly HeldClaim[]> {
    return await this.#read((database) => leases.cancelRequests(database, owner))
  }

  async signals(
    waits: readonly { readonly runId: string; readonly position: number }[],
  ): Promise<ReadonlyMap<number, EncodedValue>> {
    return await this.#read((database) => {
      const found = waits.map((wait, index) => [index, findSignal(database, wait)] as const)
      return new Map(found.flatMap(([index, payload]) => (payload === undefined ? [] : [[index, payload]])))
    })
  }

  async queues(): Promise<readonly QueueRecord[]> {
    return await this.#read(queues.allQueues)
  }

  async queueStats(name: string): Promise<QueueStats> {
    return await this.#read((database) => queues.queueStats(database, name))
  }

  async situation(id: string): Promise<Situation | undefined> {
    return await this.#snapshot((database) => situation(database, id))
  }

  async values(keys: readonly string[]): Promise<readonly (EncodedValue | undefined)[]> {
    return await this.#read((database) => keys.map((key) => findValue(database, key)))
  }

  async scan(prefix: string, after: string | null, limit: number): Promise<readonly KvRecord[]> {
    return await this.#read((database) => scanValues(database, { prefix, after, limit }))
  }

  async nextExpiry(): Promise<EpochMs | null> {
    return await this.#read(leases.nextExpiry)
  }

  watch(onChange: () => void): () => void {
    return this.#require().watch.on(onChange)
  }

  leaseThread(options: LeaseThreadOptions): LeaseThread | null {
    const { database, leaseThreads } = this.#require()
    if (this.#clock.kind !== 'real') return null
    const thread = startLeaseThread(database, options)
    leaseThreads.add(thread)
    return thread
  }

  #read<T>(body: (database: Database) => T): Promise<T> {
    const { database } = this.#require()
    return database.read(() => body(this.#still(database)))
  }

  #snapshot<T>(body: (database: Database) => T): Promise<T> {
    const { database } = this.#require()
    return database.snapshot(() => body(this.#still(database)))
  }

  async #write<T>(body: (database: Database) => T): Promise<T> {
    const { database, wal } = this.#require()
    if (this.#transactions.locked) await this.#transactions.unlocked()
    const result = await database.write(() => body(this.#still(database)))
    wal.written()
    return result
  }

  #require(): Opened {
    if (this.#opened === undefined) throw new StoreClosedError({ store: this.name })
    return this.#opened
  }

  /** A call that waited for a lock may find the store closed meanwhile. */
  #still(database: Database): Database {
    if (this.#opened?.database !== database) throw new StoreClosedError({ store: this.name })
    return database
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#settled.then(step)
    this.#settled = turn.catch(() => {})
    return turn
  }
}
