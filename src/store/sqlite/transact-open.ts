/**
 * One open transaction of a user's, on a connection of its own: begun at its first statement, so that a body without any
 * holds no lock, and bound in time from there on, as nobody else can write. It ends once, by a commit, or by whatever
 * comes first: an error, an abort, the bound, the close of the store.
 */
import type { Timer } from '../../core/clock.ts'
import { TransactionClosedError, TransactionTooLongError } from '../../core/errors.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type { SqlAccess, SqlRow, TransactRequest } from '../contract.ts'
import { assertStaysOpen } from '../stays-open.ts'
import type { Database } from './database.ts'
import { whileBusy } from './patience.ts'
import type { WriteGate } from './transact-gate.ts'
import { queryNative, runNative } from './transact-statement.ts'
import { isBusy } from './trouble.ts'

/** How long a transaction may hold the write lock. */
export const LONGEST_LOCK_MS = 5_000
const BUSY_FOR_MS = 60_000

/** The lock can't be had at once, and whoever asked can't wait: begun before its body, the next one will have it. */
export class NotAtOnceError extends Error {
  constructor() {
    super('the database is locked by another transaction, and tx.native was used before any statement')
    this.name = 'NotAtOnceError'
  }
}

export class UserTransaction implements SqlAccess {
  readonly #main: Database
  readonly #gate: WriteGate
  readonly #request: TransactRequest
  #connection: Database | undefined
  #beginning: Promise<void> | undefined
  #begun = false
  #last: Promise<unknown> = Promise.resolve()
  #bound: Timer | undefined
  /** Of what waits for the lock. */
  readonly #ended = new AbortController()
  #onDeath: (error: unknown) => void = () => {}
  /** Rejects when the transaction fails. */
  readonly death: Promise<never>
  /** What it failed by. */
  failure: unknown
  failedByStore = false

  constructor(main: Database, gate: WriteGate, request: TransactRequest) {
    this.#main = main
    this.#gate = gate
    this.#request = request
    this.death = new Promise((_, reject) => {
      this.#onDeath = reject
    })
    this.death.catch(() => {})
  }

  query(sql: string, params: readonly unknown[]): Promise<readonly SqlRow[]> {
    return this.#statement(sql, (native) => queryNative(native, sql, params))
  }

  run(sql: string, params: readonly unknown[]): Promise<{ readonly changes: number }> {
    return this.#statement(sql, (native) => runNative(native, sql, params))
  }

  get native(): unknown {
    this.#assertOpen()
    if (!this.#begun) this.#beginAtOnce()
    return this.#connection?.native
  }

  /** Begins if nothing has yet, and waits for statements that the body has not awaited: they are part of it. */
  async complete(): Promise<void> {
    await this.begin()
    await this.#last
  }

  /** Begins if nothing has yet, and waits for the lock. */
  begin(): Promise<void> {
    this.#assertOpen()
    this.#beginning ??= this.#begin()
    return this.#beginning
  }

  /** The connection, to commit on it: nothing more comes from the body. Throws if the body has ended the transaction. */
  toCommit(): Database {
    const database = this.#open()
    if (isInTransaction(database)) return database
    throw this.#closedError()
  }

  /** It is committed. */
  finish(): void {
    this.#end(undefined)
  }

  /** Rolls back what is not committed, and rejects what waits. Nothing happens to one that has ended. */
  fail(error: unknown): void {
    if (this.#ended.signal.aborted) return
    this.failure = error
    this.#connection?.rollback()
    this.#end(error)
    this.#onDeath(error)
  }

  /** The same, of what is the store's own trouble. */
  failBy(error: unknown): void {
    if (this.#ended.signal.aborted) return
    this.failedByStore = true
    this.fail(error)
  }

  #end(error: unknown): void {
    this.#bound?.cancel()
    this.#ended.abort(error)
    this.#connection?.close()
    if (this.#begun) this.#gate.leave()
  }

  #statement<T>(sql: string, act: (native: unknown) => T): Promise<T> {
    const statement = this.#run(sql, act)
    this.#last = statement.catch(ignore)
    return statement
  }

  async #run<T>(sql: string, act: (native: unknown) => T): Promise<T> {
    assertStaysOpen(this.#request.name, sql)
    await this.begin()
    return act(this.#open().native)
  }

  async #begin(): Promise<void> {
    if (this.#begun) return
    const { signal } = this.#ended
    if (!(await this.#gate.enter(signal))) throw this.#closedError()
    const attempt = (): void => {
      if (!signal.aborted) this.#beginNow()
    }
    try {
      const patience = { isBusy: (error: unknown) => isBusy(this.#main.driver, error), giveUpAfterMs: BUSY_FOR_MS }
      await whileBusy(attempt, patience)
    } catch (error) {
      this.#gate.leave()
      this.failBy(error)
      throw error
    }
    if (!signal.aborted) return
    if (!this.#begun) this.#gate.leave()
    throw this.#closedError()
  }

  #beginAtOnce(): void {
    if (!this.#gate.tryEnter()) throw this.#endedLater()
    try {
      this.#beginNow()
    } catch (error) {
      this.#gate.leave()
      if (isBusy(this.#main.driver, error)) throw this.#endedLater()
      this.failBy(error)
      throw error
    }
  }

  #endedLater(): NotAtOnceError {
    const error = new NotAtOnceError()
    this.fail(error)
    return error
  }

  #beginNow(): void {
    this.#connection ??= this.#main.connectAgain()
    this.#connection.begin()
    this.#begun = true
    this.#bound = realScheduler.after(LONGEST_LOCK_MS, () => {
      const { runId, name: transaction } = this.#request
      this.fail(new TransactionTooLongError({ runId, transaction, boundMs: LONGEST_LOCK_MS }))
    })
  }

  #open(): Database {
    this.#assertOpen()
    if (this.#connection === undefined) throw this.#closedError()
    return this.#connection
  }

  #assertOpen(): void {
    if (this.#ended.signal.aborted) throw this.#closedError()
  }

  #closedError(): TransactionClosedError {
    const { runId, name: transaction } = this.#request
    const { aborted, reason } = this.#ended.signal
    return new TransactionClosedError({ runId, transaction }, aborted ? { cause: reason } : undefined)
  }
}

/** Neither driver tells on every version: SQLite begins none inside another. */
function isInTransaction(database: Database): boolean {
  try {
    database.prepare('begin').run()
  } catch {
    return true
  }
  database.rollback()
  return false
}

function ignore(): void {}
