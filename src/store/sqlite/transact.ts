/**
 * SQL of users in the store's file, committed together with the record of it. The fence and the record are part of the
 * user's own transaction; it begins by taking the write lock, so nothing can come between its reads and its writes.
 */
import { StoreClosedError } from '../../core/errors.ts'
import type { SqlAccess, SqlTransactions, TransactOutcome, TransactRequest } from '../contract.ts'
import type { EncodedValue } from '../records.ts'
import { findHeld, findRecorded, type HeldRun, record } from './checkpoints.ts'
import type { Database } from './database.ts'
import type { Driver } from './driver.ts'
import { WriteGate } from './transact-gate.ts'
import { NotAtOnceError, UserTransaction } from './transact-open.ts'
import { Transaction } from './transaction.ts'
import { explained } from './trouble.ts'

type Body = (sql: SqlAccess) => Promise<EncodedValue>

/** BUSY, IOERR, FULL: they say nothing about the statement that met them. */
const PASSING: ReadonlySet<number> = new Set([5, 10, 13])
/** A constraint that is checked at the commit. */
const CONSTRAINT = 19

export interface SqliteTransactionsOptions {
  /** Throws StoreClosedError while there is none. */
  readonly database: () => Database
  readonly onWritten: () => void
}

export class SqliteTransactions implements SqlTransactions {
  readonly isolationLevels = []
  readonly #options: SqliteTransactionsOptions
  readonly #gate = new WriteGate()
  readonly #open = new Set<UserTransaction>()

  constructor(options: SqliteTransactionsOptions) {
    this.#options = options
  }

  async transact(request: TransactRequest, body: Body): Promise<TransactOutcome> {
    const recorded = await this.#recorded(request)
    if (recorded !== undefined) return recorded
    const outcome = await this.#attempt(request, body, { begun: false })
    if (outcome.type !== 'rolledBack' || !(outcome.error instanceof NotAtOnceError)) return outcome
    await outcome.settled
    return await this.#attempt(request, body, { begun: true })
  }

  /** True while a transaction of a user's holds the write lock, or is about to. */
  get locked(): boolean {
    return this.#gate.held
  }

  /** Resolves when none does; what writes at once then has it. */
  unlocked(): Promise<void> {
    return this.#gate.free()
  }

  /** Rolls back what is open. */
  close(store: string): void {
    for (const transaction of this.#open) transaction.failBy(new StoreClosedError({ store }))
  }

  /** `begun`: before its body, and not at its first statement. */
  async #attempt(
    request: TransactRequest,
    body: Body,
    { begun }: { readonly begun: boolean },
  ): Promise<TransactOutcome> {
    const { signal } = request
    const transaction = new UserTransaction(this.#options.database(), this.#gate, request)
    const abort = (): void => transaction.fail(signal.reason)
    this.#open.add(transaction)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    let settled: Promise<unknown> = Promise.resolve()
    try {
      if (begun || signal.aborted) await transaction.begin()
      const running = body(transaction)
      settled = running.then(ignore, ignore)
      const value = await Promise.race([running, transaction.death])
      await Promise.race([transaction.complete(), transaction.death])
      return await this.#commit(request, transaction, value)
    } catch (error) {
      transaction.fail(error)
      return this.#failed(transaction, settled)
    } finally {
      signal.removeEventListener('abort', abort)
      this.#open.delete(transaction)
    }
  }

  /** From the fence to the commit nothing else has a turn. */
  async #commit(request: TransactRequest, transaction: UserTransaction, value: EncodedValue): Promise<TransactOutcome> {
    const database = transaction.toCommit()
    const held = this.#record(request, transaction, value, database)
    if (held === undefined) {
      transaction.fail(undefined)
      return { type: 'claimLost' }
    }
    try {
      database.prepare('commit').run()
    } catch (error) {
      if (database.driver.resultCode(error) === CONSTRAINT) throw error
      transaction.failBy(error)
      const recorded = await this.#recorded(request)
      if (recorded === undefined) throw error
      return recorded
    }
    transaction.finish()
    this.#options.onWritten()
    return { type: 'performed', value, cancelRequested: held.cancelRequested }
  }

  /** undefined: the claim is lost. */
  #record(
    { entry, ...claim }: TransactRequest,
    transaction: UserTransaction,
    value: EncodedValue,
    database: Database,
  ): HeldRun | undefined {
    try {
      const held = findHeld(database, claim)
      if (held !== undefined) record(new Transaction(database), held, [{ ...entry, value }])
      return held
    } catch (error) {
      transaction.failBy(error)
      throw error
    }
  }

  /** Nothing is written. Throws what is nothing that a body could do anything about. */
  #failed({ failure, failedByStore }: UserTransaction, settled: Promise<unknown>): TransactOutcome {
    const { driver, store } = this.#options.database()
    if (failedByStore) throw explained(driver, store, failure)
    return { type: 'rolledBack', error: failure, interfered: isPassing(driver, failure), settled }
  }

  /** What is recorded under the request's claim, if that is so already; undefined: nothing, and the claim is held. */
  #recorded(request: TransactRequest): Promise<TransactOutcome | undefined> {
    const database = this.#options.database()
    return database.read(() => {
      const held = findHeld(database, request)
      if (held === undefined) return { type: 'claimLost' }
      const value = findRecorded(database, held, request.entry)
      return value === undefined ? undefined : { type: 'performed', value, cancelRequested: held.cancelRequested }
    })
  }
}

/** Query builders wrap what the driver throws. */
function isPassing(driver: Driver, error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (PASSING.has(driver.resultCode(cause) ?? 0)) return true
  }
  return false
}

function ignore(): void {}
