/**
 * What an error of PostgreSQL, or of the way to it, means for the caller: another transaction holds a lock, try again
 * later, stop, or, for everything else, that the database refuses the command at hand.
 */
import { ConfigurationError, PerdureError, StoreCorruptError, StoreUnavailableError } from '../../core/errors.ts'
import { UnreadableValueError } from '../columns.ts'
import { Interference, LockedError } from './session.ts'

/** The driver has lost the server, or never reached it. */
export class ConnectionError extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause })
    this.name = 'ConnectionError'
  }
}

const NO_RIGHTS = '42501'
const LOCK_NOT_AVAILABLE = '55P03'
const DEADLOCK = '40P01'
const SERIALIZATION_FAILURE = '40001'
const FEATURE_NOT_SUPPORTED = '0A000'
const READ_ONLY = '25006'
const CORRUPT: ReadonlySet<string> = new Set(['XX001', 'XX002'])
/** A prepared statement that isn't there, or is there already. */
const PREPARED: ReadonlySet<string> = new Set(['26000', '42P05'])
/** No such table, schema, column or function. */
const MISSING: ReadonlySet<string> = new Set(['42P01', '3F000', '42703', '42883'])
/**
 * What passes, or an operator mends: connection exceptions, no resources left, intervention, errors of the system, an
 * account that may not connect. Not a reason to fail anybody's run.
 */
const UNAVAILABLE_CLASSES: ReadonlySet<string> = new Set(['08', '28', '53', '57', '58'])
/**
 * No such database, a read-only server, a transaction that idled for too long, no rights; and what the server can't do
 * at all, or now: a standby says so of BEGIN READ WRITE, after a failover the wrong way.
 */
const UNAVAILABLE: ReadonlySet<string> = new Set(['3D000', READ_ONLY, '25P03', NO_RIGHTS, FEATURE_NOT_SUPPORTED])

/** What PostgreSQL calls the error; undefined for errors of other origin. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined
}

/** True if the transaction had no effect and may be run again at once. */
export function isInterference(error: unknown): boolean {
  return error instanceof Interference || sqlState(error) === SERIALIZATION_FAILURE || isClaimedTwice(error)
}

/** A claim was sent again while it was still being committed: run again, it finds what it was given. */
function isClaimedTwice(error: unknown): boolean {
  return (
    sqlState(error) === '23505' && error instanceof Error && 'constraint' in error && error.constraint === 'runs_claims'
  )
}

/** True if the connection is of no use any more, or is no more what this process thinks of it. */
export function spoilsConnection(error: unknown): boolean {
  return error instanceof ConnectionError || isFatal(error) || isForgotten(error)
}

/** True if another connection may do what this one could not, without that anything has happened. */
export function isForgotten(error: unknown): boolean {
  return PREPARED.has(sqlState(error) ?? '') || isStalePlan(error)
}

/** True if the transaction may not write: the server can't, or transactions are so by default. */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === READ_ONLY
}

/** True if a statement names what the schema doesn't have. */
export function missesSchema(error: unknown): boolean {
  return MISSING.has(sqlState(error) ?? '')
}

const QUERY_CANCELED = '57014'

/**
 * Of a statement of a user's: true if others' transactions, or trouble with the server, made it fail, and not what it
 * says. Query builders wrap what the driver throws.
 */
export function isPassing(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ConnectionError || isLoss(cause)) return true
    const state = sqlState(cause)
    if (state === SERIALIZATION_FAILURE || state === DEADLOCK) return true
    if (state !== undefined && state !== QUERY_CANCELED && UNAVAILABLE_CLASSES.has(state.slice(0, 2))) return true
  }
  return false
}

/** What Node and `pg` call a lost connection. */
function isLoss(error: Error): boolean {
  if ('code' in error && typeof error.code === 'string' && /^E(CONN|PIPE|TIMEDOUT|HOST|NET)/.test(error.code))
    return true
  return /^Connection terminated|^Client has encountered a connection error/.test(error.message)
}

/** An error of the driver as the store sees it: without a word of the server it is the connection's. */
export function driverError(error: unknown): unknown {
  if (sqlState(error) !== undefined || error instanceof TypeError || error instanceof RangeError) return error
  return new ConnectionError(error)
}

/** The error to reject with. */
export function explained(store: string, error: unknown): unknown {
  if (error instanceof PerdureError || error instanceof LockedError) return error
  const problem = messageOf(error)
  const cause = { cause: error }
  if (error instanceof UnreadableValueError) return new StoreCorruptError({ store, problem }, cause)
  if (error instanceof ConnectionError || error instanceof Interference) {
    return new StoreUnavailableError({ store, problem }, cause)
  }
  const state = sqlState(error)
  if (state === undefined) return error
  if (state === LOCK_NOT_AVAILABLE || state === DEADLOCK) return new LockedError(error)
  if (CORRUPT.has(state)) return new StoreCorruptError({ store, problem }, cause)
  if (PREPARED.has(state)) {
    const advice =
      'the connection forgets prepared statements; behind a pooler, give postgres() the option prepare: false'
    return new StoreUnavailableError({ store, problem: `${problem}: ${advice}` }, cause)
  }
  if (MISSING.has(state)) {
    const advice = 'its tables are not there, or not as they were when the store was opened; was the schema dropped?'
    return new StoreUnavailableError({ store, problem: `${problem}: ${advice}` }, cause)
  }
  const passes = UNAVAILABLE_CLASSES.has(state.slice(0, 2)) || UNAVAILABLE.has(state)
  if (passes || state === SERIALIZATION_FAILURE) {
    return new StoreUnavailableError({ store, problem }, cause)
  }
  return error
}

/** The error to reject `open` with: what won't pass by itself names its option. `schema` is quoted. */
export function explainedOpening(store: string, schema: string, error: unknown): unknown {
  const state = sqlState(error) ?? ''
  const problem = messageOf(error)
  if (state.startsWith('28') || state === '3D000') {
    const way = 'Correct the user, the password or the name of the database, or create them'
    return new ConfigurationError({ option: 'postgres.connection', problem: `${problem}. ${way}` }, { cause: error })
  }
  if (state === NO_RIGHTS) {
    const way =
      `Grant the user of the connection the use of the schema: grant usage on schema ${schema}; grant all on all ` +
      `tables in schema ${schema}; grant all on all sequences in schema ${schema}`
    return new ConfigurationError({ option: 'postgres.schema', problem: `${problem}. ${way}` }, { cause: error })
  }
  const explanation = explained(store, error)
  if (explanation instanceof LockedError) return unavailable(store, explanation)
  if (explanation !== error || !isFatal(error)) return explanation
  const way = 'Correct what the connection is made with'
  return new ConfigurationError({ option: 'postgres.connection', problem: `${problem}. ${way}` }, { cause: error })
}

/** For callers outside the store, to whom a lock that is held is trouble that passes. */
export function unavailable(store: string, error: unknown): unknown {
  if (!(error instanceof LockedError)) return error
  return new StoreUnavailableError({ store, problem: messageOf(error) }, { cause: error })
}

/** The server has said its last word on this connection, and closes it. */
function isFatal(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC')
}

/** After a migration, a plan may no longer fit what it was made for. */
function isStalePlan(error: unknown): boolean {
  return sqlState(error) === FEATURE_NOT_SUPPORTED && messageOf(error).includes('cached plan')
}

function messageOf(error: unknown): string {
  // Node tries each address of a host, and has no message for all of them together.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
