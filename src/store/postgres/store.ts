/** The store in a PostgreSQL database: what the contract asks, each call as one read or a few transactions. */
import type { Clock, EpochMs } from '../../core/clock.ts'
import { ConfigurationError, StoreClosedError } from '../../core/errors.ts'
import type {
  CallerStarts,
  ClaimOutcome,
  ClaimRequest,
  Command,
  CommitOutcome,
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
import { BlockedCommands, commitPastLocks } from './blocked.ts'
import { claim } from './claim/claim.ts'
import { DatabaseClock } from './clock.ts'
import { concernsOthers } from './concern.ts'
import { Database } from './database.ts'
import * as kv from './kv.ts'
import { startLeaseThread } from './lease-thread-host.ts'
import * as leases from './leases.ts'
import { list } from './listing.ts'
import type { Settings } from './options.ts'
import { PlainStarts } from './plain-starts.ts'
import * as processes from './processes.ts'
import * as queues from './queues.ts'
import * as reads from './reads.ts'
import { sweep } from './retention.ts'
import { situation } from './situation.ts'
import { callerStarts, quotedForDrivers } from './start-sql.ts'
import { PostgresTransactions } from './transact.ts'
import { unavailable } from './trouble.ts'
import { channelOf, Watch } from './watch.ts'

/** What lives from `open` to `close`. */
interface Opened {
  readonly database: Database
  readonly blocked: BlockedCommands
  readonly plainStarts: PlainStarts
  readonly watch: Watch
  readonly leaseThreads: Set<LeaseThread>
}

export class PostgresStore implements Store {
  readonly name: string
  readonly capabilities: StoreCapabilities = { durable: true, shared: true }
  readonly callerStarts: CallerStarts
  readonly transactions: SqlTransactions
  readonly #transactions: PostgresTransactions
  readonly #settings: Settings
  #clock: Clock
  #everOpened = false
  #opened: Opened | undefined
  /** The last `open` or `close`, which the next one waits for. */
  #settled: Promise<void> = Promise.resolve()

  /** Without a clock it has that of the database. */
  constructor(settings: Settings, clock: Clock = new DatabaseClock()) {
    this.name = settings.store
    this.#settings = settings
    this.#clock = clock
    this.#transactions = new PostgresTransactions(() => this.#require().database)
    this.transactions = this.#transactions
    this.callerStarts = callerStarts({
      schema: quotedForDrivers(settings.schema),
      channel: settings.notify ? channelOf(settings.schema) : null,
      now: () => (this.#clock instanceof DatabaseClock ? null : this.#clock.now()),
    })
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
      const { schema, notify } = this.#settings
      const database = await Database.open({ settings: this.#settings, clock: this.#clock })
      const watch = new Watch({
        schema,
        read: (body) => database.read(body),
        newClient: notify ? (config) => database.newClient('listen', config) : null,
      })
      const blocked = new BlockedCommands(database, this.name)
      const plainStarts = new PlainStarts(database)
      this.#opened = { database, blocked, plainStarts, watch, leaseThreads: new Set() }
    })
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      const opened = this.#opened
      if (opened === undefined) return
      this.#transactions.close(this.name)
      opened.blocked.close()
      this.#opened = undefined
      for (const thread of opened.leaseThreads) await thread.stop()
      await opened.watch.close()
      await opened.database.close()
    })
  }

  /**
   * Creates the tables of the store, or brings them up to date, without opening it: for those who let another user do
   * that than the one of their processes, which have `migrate: false`.
   */
  async migrate(): Promise<void> {
    const database = await Database.open({ settings: { ...this.#settings, migrate: true }, clock: this.#clock })
    await database.close()
  }

  async commit(commands: readonly Command[]): Promise<readonly CommitOutcome[]> {
    const { database, blocked, plainStarts } = this.#require()
    if (commands.length === 0) return []
    const goOn = async (command: Command): Promise<Outcome> => {
      const outcome = await this.#telling(blocked.goOn(command))
      this.#tell(command, outcome)
      return outcome
    }
    const outcomes =
      (await this.#telling(plainStarts.commit(commands))) ??
      (await this.#telling(commitPastLocks(database, commands, goOn)))
    outcomes.forEach((outcome, index) => {
      if (outcome.type !== 'blocked') this.#tell(commands[index], outcome)
    })
    return outcomes
  }

  async claim(request: ClaimRequest): Promise<ClaimOutcome> {
    return await this.#call((database) => claim(database, request))
  }

  async renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome> {
    this.#require()
    if (claims.length === 0) return { lost: [], cancelRequested: [] }
    return await this.#call((database) => leases.renew(database, claims, leaseMs))
  }

  async reclaim(request: ReclaimRequest): Promise<ReclaimOutcome> {
    const outcome = await this.#call((database) => leases.reclaim(database, request))
    if (outcome.runs.length > 0) this.#changed()
    return outcome
  }

  async sweep(request: SweepRequest): Promise<SweepOutcome> {
    return await this.#call((database) => sweep(database, request))
  }

  async registerQueues(asked: readonly NewQueue[]): Promise<readonly QueueRecord[]> {
    this.#require()
    if (asked.length === 0) return []
    const registered = await this.#call((database) => queues.registerQueues(database, asked))
    this.#changed()
    return registered
  }

  async changeQueue(name: string, change: QueueChange): Promise<QueueRecord | undefined> {
    const changed = await this.#call((database) => queues.changeQueue(database, name, change))
    this.#changed()
    return changed
  }

  async registerProcess(process: Omit<ProcessRecord, 'registeredAt'>): Promise<void> {
    await this.#call((database) => processes.registerProcess(database, process))
  }

  async removeProcesses(owners: readonly string[]): Promise<void> {
    await this.#call((database) => processes.removeProcesses(database, owners))
  }

  async processes(): Promise<readonly ProcessRecord[]> {
    return await this.#call(processes.processes)
  }

  async runs(ids: readonly string[]): Promise<readonly (RunRecord | undefined)[]> {
    return await this.#call((database) => reads.runs(database, ids))
  }

  async inputs(ids: readonly string[]): Promise<readonly (EncodedValue | undefined)[]> {
    return await this.#call((database) => reads.inputs(database, ids))
  }

  async endings(ids: readonly string[]): Promise<ReadonlyMap<string, Ending | 'missing'>> {
    return await this.#call((database) => reads.endings(database, ids))
  }

  async list(request: ListRequest): Promise<readonly RunRecord[]> {
    return await this.#call((database) => list(database, request))
  }

  async histories(ids: readonly string[]): Promise<ReadonlyMap<string, readonly CheckpointRecord[]>> {
    return await this.#call((database) => reads.histories(database, ids))
  }

  async attempts(id: string): Promise<readonly AttemptRecord[]> {
    return await this.#call((database) => reads.attempts(database, id))
  }

  async cancelRequests(owner: string): Promise<readonly HeldClaim[]> {
    return await this.#call((database) => leases.cancelRequests(database, owner))
  }

  async signals(
    waits: readonly { readonly runId: string; readonly position: number }[],
  ): Promise<ReadonlyMap<number, EncodedValue>> {
    return await this.#call((database) => reads.signals(database, waits))
  }

  async queues(): Promise<readonly QueueRecord[]> {
    return await this.#call(queues.allQueues)
  }

  async queueStats(name: string): Promise<QueueStats> {
    return await this.#call((database) => queues.queueStats(database, name))
  }

  async situation(id: string): Promise<Situation | undefined> {
    return await this.#call((database) => situation(database, id))
  }

  async values(keys: readonly string[]): Promise<readonly (EncodedValue | undefined)[]> {
    return await this.#call((database) => kv.values(database, keys))
  }

  async scan(prefix: string, after: string | null, limit: number): Promise<readonly KvRecord[]> {
    return await this.#call((database) => kv.scan(database, prefix, after, limit))
  }

  async nextExpiry(): Promise<EpochMs | null> {
    return await this.#call(leases.nextExpiry)
  }

  watch(onChange: () => void): () => void {
    return this.#require().watch.on(onChange)
  }

  leaseThread(options: LeaseThreadOptions): LeaseThread | null {
    const { database, leaseThreads } = this.#require()
    if (this.#clock.kind !== 'real') return null
    const way = { connection: database.clientConfig('any'), render: (sql: string) => database.render(sql) }
    const thread = startLeaseThread(way, options)
    if (thread !== null) leaseThreads.add(thread)
    return thread
  }

  async #call<T>(body: (database: Database) => Promise<T>): Promise<T> {
    return await this.#telling(body(this.#require().database))
  }

  async #telling<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      throw unavailable(this.name, error)
    }
  }

  #tell(command: Command | undefined, outcome: Outcome): void {
    if (concernsOthers(command, outcome)) this.#changed()
  }

  /** The store may have been closed meanwhile. */
  #changed(): void {
    this.#opened?.watch.changed()
  }

  #require(): Opened {
    if (this.#opened === undefined) throw new StoreClosedError({ store: this.name })
    return this.#opened
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#settled.then(step)
    this.#settled = turn.catch(() => {})
    return turn
  }
}
