/**
 * SQL of users in the store's database, committed together with the record of it: on a connection of the pool, first the
 * user's statements, then the fence, which locks the row of the run, the record and the commit (transact-commit.ts).
 * Between fence and commit nobody can take the claim away.
 *
 * A connection that a body may have changed the session of (search_path, say) is closed afterwards. The store's own
 * statements name their schema, so nothing that is set changes what they mean.
 */
import { StoreClosedError } from '../../core/errors.ts'
import { realScheduler } from '../../core/scheduler.ts'
import { flag, number, textOrNull } from '../columns.ts'
import type { IsolationLevel, SqlAccess, SqlTransactions, TransactOutcome, TransactRequest } from '../contract.ts'
import type { EncodedValue } from '../records.ts'
import { type Connection, ignored } from './connection.ts'
import type { Database } from './database.ts'
import { LockedError, type Row } from './session.ts'
import { type Committed, lookForCommit, RecordingError, recordAndCommit } from './transact-commit.ts'
import { UserTransaction } from './transact-open.ts'
import { Room } from './transact-room.ts'
import { explained, isPassing } from './trouble.ts'

type Body = (sql: SqlAccess) => Promise<EncodedValue>

const LEVELS: readonly IsolationLevel[] = ['read committed', 'repeatable read', 'serializable']
const BEGIN: { readonly [Level in IsolationLevel]: string } = {
  'read committed': 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
  'repeatable read': 'BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE',
  serializable: 'BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE',
}
/**
 * The server's process, as it is during the transaction, whatever pooler stands between; whether the claim is held, and
 * what is recorded already.
 */
export const BEGUN = `
select pg_catalog.pg_backend_pid(), r.seq, r.cancel_requested, c.value
from (select 1) as always (there)
left join perdure.runs r on r.id = $1 and r.status = 'PENDING' and r.token = $2
left join perdure.checkpoints c on c.run = r.seq and c.seq = $3`
export const CANCEL = 'select pg_catalog.pg_cancel_backend($1)'

/** A server that answers neither a cancellation nor a rollback for so long is left. */
const STOP_WITHIN_MS = 2_000

export class PostgresTransactions implements SqlTransactions {
  readonly isolationLevels = LEVELS
  readonly #database: () => Database
  readonly #room = new Room()
  readonly #open = new Set<UserTransaction>()

  /** `database` throws StoreClosedError while there is none. */
  constructor(database: () => Database) {
    this.#database = database
  }

  async transact(request: TransactRequest, body: Body): Promise<TransactOutcome> {
    const { signal } = request
    if (!(await this.#room.enter(this.#database().lendable, signal))) return rolledBack(signal.reason)
    let outcome: Committed | TransactOutcome
    try {
      const database = this.#database()
      outcome = await database.lend((connection, client) => {
        const transaction = new UserTransaction(client, request)
        return this.#run({ database, connection, transaction, request }, body)
      })
    } finally {
      this.#room.leave()
    }
    return outcome.type === 'unknown' ? await lookForCommit(this.#database, request) : outcome
  }

  /** Rolls back what is open. */
  close(store: string): void {
    for (const transaction of this.#open) transaction.fail(new StoreClosedError({ store }))
  }

  async #run(open: Open, body: Body): Promise<Committed | TransactOutcome> {
    const { database, connection, transaction, request } = open
    const { signal } = request
    const { backend, outcome } = await begin(open)
    if (outcome !== undefined) {
      await connection.rollback()
      return outcome
    }
    const abort = (): void => transaction.fail(signal.reason)
    this.#open.add(transaction)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    let settled: Promise<unknown> = Promise.resolve()
    try {
      const running = signal.aborted ? transaction.death : body(transaction)
      settled = running.then(ignored, ignored)
      const value = await Promise.race([running, transaction.death])
      // Those that the body has not awaited are part of it.
      await Promise.race([transaction.idle(), transaction.death])
      // From here on it commits, whatever comes.
      signal.removeEventListener('abort', abort)
      transaction.close()
      const committed = await recordAndCommit({ database, connection, transaction, request, value })
      if (committed.type === 'claimLost') await connection.rollback()
      return committed
    } catch (error) {
      transaction.fail(error)
      await stop(open, backend)
      return failed(open, error, settled)
    } finally {
      signal.removeEventListener('abort', abort)
      this.#open.delete(transaction)
      if (transaction.changedSession) connection.spoil()
    }
  }
}

interface Open {
  readonly database: Database
  readonly connection: Connection
  readonly transaction: UserTransaction
  readonly request: TransactRequest
}

async function begin({ database, connection, request }: Open): Promise<Begun> {
  const { runId, token, entry, isolationLevel } = request
  const text = `${BEGIN[isolationLevel ?? 'read committed']}${database.durably}`
  const [begun, found] = await Promise.allSettled([
    connection.command(text),
    connection.query(BEGUN, [runId, token, entry.seq]),
  ])
  if (begun.status === 'fulfilled' && found.status === 'fulfilled') return toBegun(found.value[0] ?? [])
  await connection.rollback()
  throw explained(database.settings.store, begun.status === 'rejected' ? begun.reason : Reflect.get(found, 'reason'))
}

interface Begun {
  readonly backend: number
  /** Without its body. */
  readonly outcome: TransactOutcome | undefined
}

function toBegun([backend, seq, cancelRequested, recorded]: Row): Begun {
  const value = textOrNull(recorded ?? null)
  const told: TransactOutcome | undefined =
    value === null ? undefined : { type: 'performed', value, cancelRequested: flag(cancelRequested) }
  return { backend: number(backend), outcome: seq === null ? { type: 'claimLost' } : told }
}

/** A statement under way would hold up the rollback. */
async function stop({ database, connection, transaction }: Open, backend: number): Promise<void> {
  const stopped = async (): Promise<boolean> => {
    if (transaction.running) await database.read((session) => session.query(CANCEL, [backend])).catch(ignored)
    await transaction.idle()
    await connection.rollback()
    return true
  }
  const late = new Promise<boolean>((resolve) => {
    realScheduler.after(STOP_WITHIN_MS, () => resolve(false), { background: true })
  })
  if (!(await Promise.race([stopped(), late]))) connection.spoil()
}

/** Throws what no body could do anything about. */
function failed({ database, transaction, request }: Open, error: unknown, settled: Promise<unknown>): TransactOutcome {
  const { store } = database.settings
  if (error instanceof RecordingError) throw explained(store, error.cause)
  if (error instanceof StoreClosedError && error.store === store) throw error
  if (request.signal.aborted) return { type: 'rolledBack', error, interfered: false, settled }
  const interfered = transaction.passing !== undefined || isPassing(error) || error instanceof LockedError
  return { type: 'rolledBack', error, interfered, settled }
}

function rolledBack(error: unknown): TransactOutcome {
  return { type: 'rolledBack', error, interfered: false, settled: Promise.resolve() }
}
