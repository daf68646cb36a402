/** The store on one SQLite file: what the contract asks, each call as one read or one transaction. */
import { resolve } from 'node:path'
import type { Clock, EpochMs } from '../../core/clock.ts'
import { ConfigurationError, StoreClosedError } from '../../core/errors.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type {
  ClaimedRun,
  ClaimRequest,
  Command,
  HeldClaim,
  LeaseThread,
  LeaseThreadOptions,
  ListRequest,
  Outcome,
  ReclaimedRun,
  ReclaimRequest,
  RenewOutcome,
  Store,
  StoreCapabilities,
} from '../contract.ts'
import type { AttemptRecord, CheckpointRecord, EncodedValue, Ending, ProcessRecord, RunRecord } from '../records.ts'
import { currentAttempt } from '../transitions.ts'
import { pastAttempts } from './attempts.ts'
import { findHistory } from './checkpoints.ts'
import { claim, isClaimable, nextDue } from './claims.ts'
import { applyBatch } from './commands.ts'
import { Database } from './database.ts'
import { LeaseThreadHost } from './lease-thread-host.ts'
import * as leases from './leases.ts'
import { findEnding, findInput, findRun, listRuns } from './runs.ts'
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
      this.#opened = undefined
      opened.watch.stop()
      opened.wal.close()
      for (const thread of opened.leaseThreads) await thread.stop()
      // The last connection to close moves the log into the database and removes it.
      opened.database.close()
    })
  }

  async commit(commands: readonly Command[]): Promise<readonly Outcome[]> {
    this.#require()
    if (commands.length === 0) return []
    return await this.#write((database) => applyBatch(database, commands))
  }

  async claim(request: ClaimRequest): Promise<readonly ClaimedRun[]> {
    if (!(await this.#read((database) => isClaimable(database, request)))) return []
    return await this.#write((database) => claim(database, request))
  }

  async renew(claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome> {
    this.#require()
    if (claims.length === 0) return { lost: [], cancelRequested: [] }
    return await this.#write((database) => leases.renew(database, claims, leaseMs))
  }

  async reclaim(request: ReclaimRequest): Promise<readonly ReclaimedRun[]> {
    if (!(await this.#read((database) => leases.isReclaimable(database, request)))) return []
    return await this.#write((database) => leases.reclaim(database, request))
  }

  async registerProcess(process: Omit<ProcessRecord, 'registeredAt'>): Promise<void> {
    await this.#write((database) => leases.registerProcess(database, process))
  }

  async removeProcesses(owners: readonly string[]): Promise<void> {
    this.#require()
    if (owners.length === 0) return
    await this.#write((database) => leases.removeProcesses(database, owners))
  }

  async processes(): Promise<readonly ProcessRecord[]> {
    return await this.#read(leases.processes)
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

  async nextDue(definitions: readonly string[]): Promise<EpochMs | null> {
    return await this.#read((database) => nextDue(database, definitions, database.clock.now()))
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
    const thread = new LeaseThreadHost(database, options)
    leaseThreads.add(thread)
    return thread
  }

  #read<T>(body: (database: Database) => T): Promise<T> {
    const { database } = this.#require()
    return database.read(() => body(this.#still(database)))
  }

  async #write<T>(body: (database: Database) => T): Promise<T> {
    const { database, wal } = this.#require()
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
