/**
 * How a user's transaction ends, once its body has: the fence and the record, within it, and the commit.
 *
 * Whether it was committed is not known if the connection is lost over it. Then the entry is looked for under the locks
 * that the lost one had: by the time that they are had, it has ended.
 */
import { StoreUnavailableError, TransactionClosedError } from '../../core/errors.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type { TransactOutcome, TransactRequest } from '../contract.ts'
import type { EncodedValue } from '../records.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import { LockedError, type Transaction } from './session.ts'
import type { UserTransaction } from './transact-open.ts'
import { type FencedRun, fence, findRecorded, insertEntry } from './transact-record.ts'
import { ConnectionError, isPassing, sqlState } from './trouble.ts'

export type Committed = Exclude<TransactOutcome, { readonly type: 'rolledBack' }> | { readonly type: 'unknown' }

const SAVEPOINT = 'SAVEPOINT perdure_record'
const BACK = 'ROLLBACK TO SAVEPOINT perdure_record'

const SERIALIZATION_FAILURE = '40001'
const READ_ONLY = '25006'
const NO_TRANSACTION = '25P01'
const SPOILT_TRANSACTION = '25P02'
/** What a server says that goes down over a commit. */
const UNKNOWN_CLASSES: ReadonlySet<string> = new Set(['08', '57', '58', 'XX'])

/** Others lock the row of a run for a moment only. */
const LOCK_TIMEOUT_MS = 2_000
const LOOK_AGAIN_AFTER_MS = 200

/** A statement of the store's has failed in a user's transaction, which says nothing about that. */
export class RecordingError extends Error {
  constructor(cause: unknown) {
    super('the record of a transaction could not be made', { cause })
    this.name = 'RecordingError'
  }
}

export interface Ending {
  readonly database: Database
  readonly connection: Connection
  readonly transaction: UserTransaction
  readonly request: TransactRequest
  readonly value: EncodedValue
}

/** Rejects if it is rolled back: with what was wrong with it, or a RecordingError. */
export async function recordAndCommit(ending: Ending): Promise<Committed> {
  const { connection, request, transaction } = ending
  const [saved, fenced] = await Promise.allSettled([connection.command(SAVEPOINT), fence(connection, request)])
  if (saved.status === 'rejected') throw whyUnsaved(transaction, request, saved.reason)
  if (fenced.status === 'fulfilled') return await recordFenced(ending, fenced.value)
  const state = sqlState(fenced.reason)
  if (state === READ_ONLY) return await recordAfterwards(ending)
  if (state !== SERIALIZATION_FAILURE) throw whyUnrecorded(fenced.reason)
  await connection.command(BACK)
  return await recordFencedBeside(ending)
}

async function recordFenced(ending: Ending, run: FencedRun | undefined): Promise<Committed> {
  if (run === undefined) return { type: 'claimLost' }
  await insert(ending, run)
  return await commit(ending, run)
}

/** The row has changed since the snapshot: another transaction locks it for this one, until this one has ended. */
async function recordFencedBeside(ending: Ending): Promise<Committed> {
  const { database, request } = ending
  let result: PromiseSettledResult<Committed> | undefined
  const beside = async (side: Transaction): Promise<void> => {
    const run = await fence(side, request)
    ;[result] = await Promise.allSettled([recordFenced(ending, run)])
  }
  try {
    await database.write(beside, { lockTimeoutMs: LOCK_TIMEOUT_MS })
  } catch (error) {
    if (result === undefined) throw whyUnrecorded(error)
  }
  if (result?.status === 'fulfilled') return result.value
  throw result?.reason
}

/** A read-only body: nothing of it can be lost, so it is committed and then recorded. */
async function recordAfterwards({ connection, database, request, value }: Ending): Promise<Committed> {
  await connection.command('COMMIT')
  try {
    return await database.write(async (transaction): Promise<Committed> => {
      const run = await fence(transaction, request)
      if (run === undefined) return { type: 'claimLost' }
      await insertEntry(transaction, run, request, value)
      return { type: 'performed', value, cancelRequested: run.cancelRequested }
    })
  } catch (error) {
    if (StoreUnavailableError.is(error)) return { type: 'unknown' }
    throw whyUnrecorded(error)
  }
}

async function insert({ connection, request, value }: Ending, run: FencedRun): Promise<void> {
  try {
    await insertEntry(connection, run, request, value)
  } catch (error) {
    throw whyUnrecorded(error)
  }
}

async function commit({ connection, transaction, value }: Ending, run: FencedRun): Promise<Committed> {
  let said: string
  try {
    said = await connection.command('COMMIT')
  } catch (error) {
    const state = sqlState(error)
    if (state !== undefined && !UNKNOWN_CLASSES.has(state.slice(0, 2))) throw error
    connection.spoil()
    return { type: 'unknown' }
  }
  if (said !== 'COMMIT') throw transaction.refusal?.error ?? new Error('the transaction could not be committed')
  return { type: 'performed', value, cancelRequested: run.cancelRequested }
}

function whyUnsaved(transaction: UserTransaction, { runId, name }: TransactRequest, error: unknown): unknown {
  switch (sqlState(error)) {
    case NO_TRANSACTION:
      return new TransactionClosedError({ runId, transaction: name })
    case SPOILT_TRANSACTION:
      // The body has gone on as if nothing had been wrong.
      return transaction.passing?.error ?? transaction.refusal?.error ?? error
    default:
      return whyUnrecorded(error)
  }
}

function whyUnrecorded(error: unknown): unknown {
  return isPassing(error) || error instanceof LockedError || error instanceof ConnectionError
    ? error
    : new RecordingError(error)
}

// ── A commit that was not answered ──────────────────────────────────────────────────────────────────────────────

/** Thrown, so that nothing of the look stays. */
class Looked extends Error {
  readonly outcome: TransactOutcome

  constructor(outcome: TransactOutcome) {
    super('looked')
    this.outcome = outcome
  }
}

/** What became of the transaction. Looks until that is known; `database` throws when nobody can know any more. */
export async function lookForCommit(database: () => Database, request: TransactRequest): Promise<TransactOutcome> {
  for (;;) {
    try {
      await database().write((transaction) => look(transaction, request), { lockTimeoutMs: LOCK_TIMEOUT_MS })
    } catch (error) {
      if (error instanceof Looked) return error.outcome
      if (!(error instanceof LockedError || StoreUnavailableError.is(error))) throw error
    }
    await new Promise<void>((resolve) => {
      realScheduler.after(LOOK_AGAIN_AFTER_MS, resolve)
    })
  }
}

async function look(transaction: Transaction, request: TransactRequest): Promise<never> {
  const run = await fence(transaction, request)
  if (run === undefined) throw new Looked({ type: 'claimLost' })
  const value = await findRecorded(transaction, run, request)
  if (value !== undefined) throw new Looked({ type: 'performed', value, cancelRequested: run.cancelRequested })
  const error = new Error('the connection was lost before the transaction was committed')
  throw new Looked({ type: 'rolledBack', error, interfered: true, settled: Promise.resolve() })
}
