/**
 * The way to one schema of a database: reads, transactions that are run again where that is right, and errors that say
 * what to do.
 *
 * Transactions are at READ COMMITTED: rows are locked by one statement and looked at by later ones, which see what was
 * committed while the first one waited. Nothing is kept in a session between two transactions, so a pooler may stand
 * between, and connections are told apart by nothing.
 */
import type { Client, ClientConfig, PoolClient } from 'pg'
import type { Clock, EpochMs } from '../../core/clock.ts'
import { StoreVersionError } from '../../core/errors.ts'
import { realRandom } from '../../core/random.ts'
import { realScheduler } from '../../core/scheduler.ts'
import { number } from '../columns.ts'
import { DatabaseClock } from './clock.ts'
import { type Answering, Connection, type Speech } from './connection.ts'
import { loadDriver } from './driver.ts'
import {
  admit,
  admitConnection,
  admitServer,
  admitStill,
  look,
  migrate,
  type Opening,
  refuseToMigrate,
  SCHEMA_VERSION,
} from './migrate.ts'
import type { Settings } from './options.ts'
import { ConnectionPool } from './pool.ts'
import type { Session, Transaction } from './session.ts'
import { columnTypes, quoted, Statements, TEXT_ARRAY } from './statements.ts'
import { explained, explainedOpening, isForgotten, isInterference, isReadOnly, missesSchema } from './trouble.ts'

export interface WriteOptions {
  /** How long a statement may wait for a lock before the whole is a LockedError. Default: 50 ms. */
  readonly lockTimeoutMs?: number
  /** How long a statement may take before its connection is taken for dead. Default: 10 s. */
  readonly answerWithinMs?: number
}

/** A lock is held for the length of a transaction, which is short unless it is a user's. */
const LOCK_TIMEOUT_MS = 50
const ANSWER_WITHIN_MS = 10_000
/** What others did meanwhile is seldom in the way twice; after this often the runtime is told, which keeps trying. */
const MOST_TRIES = 12
const LONGEST_PAUSE_MS = 50
/** Commits, claims, leases, reads. */
const KEPT_CONNECTIONS = 4
const CHECK_SCHEMA_EVERY_MS = 60_000

/**
 * jit: a plan that looks costly for want of knowledge would be compiled for longer than it runs.
 * plan_cache_mode: the plans are the same whatever the values, and planning each time costs more than they do.
 * enable_seqscan: of a table without statistics yet, PostgreSQL may think that it is small, and keep the plan.
 * idle_in_transaction_session_timeout: a process that is stopped in the middle lets go of what it has locked.
 */
const LOCALS = [
  'jit = off',
  'plan_cache_mode = force_generic_plan',
  'enable_seqscan = off',
  'idle_in_transaction_session_timeout = 10000',
]
  .map((setting) => `SET LOCAL ${setting}`)
  .join('; ')
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${LOCALS}`
const DURABLY = 'SET LOCAL synchronous_commit = on'
const BEGIN_SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

export interface Location {
  readonly settings: Settings
  readonly clock: Clock
}

export class Database {
  readonly settings: Settings
  readonly clock: Clock
  readonly #statements: Statements
  readonly #pool: ConnectionPool
  readonly #speech: Speech
  #begin = BEGIN
  /** Until then transactions are taken to be read-only by default. */
  #readsOnlyUntil = Number.NEGATIVE_INFINITY
  #checkedAt = realScheduler.monotonic()

  private constructor({ settings, clock }: Location, pool: ConnectionPool, speech: Omit<Speech, 'instant'>) {
    this.settings = settings
    this.clock = clock
    this.#statements = speech.statements
    this.#pool = pool
    this.#speech = { ...speech, instant: (databaseNow) => this.instant(databaseNow) }
  }

  /** Connects and, if it may, brings the schema up to date. */
  static async open(location: Location): Promise<Database> {
    const { settings } = location
    const driver = await loadDriver(settings.store)
    const statements = new Statements(settings.schema, settings.prepare)
    const pool = new ConnectionPool(driver, settings)
    const database = new Database(location, pool, {
      statements,
      types: columnTypes(driver.types.getTypeParser(TEXT_ARRAY)),
    })
    try {
      await database.#prepare()
      return database
    } catch (error) {
      await pool.close()
      throw explainedOpening(settings.store, quoted(settings.schema), error)
    }
  }

  /** The instant by the store's clock, given that of the database (`NOW`) as a statement has just read it. */
  instant(databaseNow: unknown): EpochMs {
    if (!(this.clock instanceof DatabaseClock)) return this.clock.now()
    const now = number(databaseNow)
    this.clock.measured(now)
    return now
  }

  /**
   * Reads, and locks and writes of single statements: each sees what was committed before it began. Where nothing may be
   * written but in transactions that say so, it is one that does.
   */
  async read<T>(body: (session: Session) => Promise<T>): Promise<T> {
    if (realScheduler.monotonic() < this.#readsOnlyUntil) return await this.write(body)
    try {
      return await this.#patiently(() => this.#connected({ answerWithinMs: ANSWER_WITHIN_MS }, body))
    } catch (error) {
      if (!(error instanceof Error && isReadOnly(error.cause))) throw error
    }
    const result = await this.write(body)
    this.#readsOnlyUntil = realScheduler.monotonic() + CHECK_SCHEMA_EVERY_MS
    return result
  }

  /** Reads that belong together: all see the same state. */
  snapshot<T>(body: (session: Session) => Promise<T>): Promise<T> {
    return this.#patiently(() =>
      this.#connected({ answerWithinMs: ANSWER_WITHIN_MS }, (connection) => within(connection, BEGIN_SNAPSHOT, body)),
    )
  }

  /**
   * Runs `body` in one transaction. It may run again, from the start, if the transaction had no effect. Throws
   * LockedError if what it needs stays locked.
   */
  write<T>(body: (transaction: Transaction) => Promise<T>, options: WriteOptions = {}): Promise<T> {
    const { lockTimeoutMs = LOCK_TIMEOUT_MS, answerWithinMs = ANSWER_WITHIN_MS } = options
    const begin = `${this.#begin}; SET LOCAL lock_timeout = ${Math.trunc(lockTimeoutMs)}`
    return this.#patiently(() => this.#connected({ answerWithinMs }, (connection) => within(connection, begin, body)))
  }

  /**
   * Lends a connection for a transaction that `body` begins and ends itself, as long as it takes, and of which somebody
   * else has the client. It rejects as the driver does, unless there is no connection.
   */
  async lend<T>(body: (connection: Connection, client: PoolClient) => Promise<T>): Promise<T> {
    let lent = false
    try {
      return await this.#pool.lend(async (client) => {
        const connection = new Connection(client, this.#speech, { answerWithinMs: ANSWER_WITHIN_MS })
        lent = true
        try {
          return await body(connection, client)
        } finally {
          connection.release()
        }
      })
    } catch (error) {
      throw lent ? error : explained(this.settings.store, error)
    }
  }

  /** So many connections may be lent without that the store's own calls go without. */
  get lendable(): number {
    return Math.max(1, this.#pool.size - KEPT_CONNECTIONS)
  }

  /** What every transaction that writes must begin with, of one that has other settings than ours. */
  get durably(): string {
    return this.#begin === BEGIN ? '' : `; ${DURABLY}`
  }

  /** A text of ours with the name of the schema in it, for whoever has a connection of another kind. */
  render(sql: string): string {
    return this.#statements.render(sql)
  }

  /** A connection that is not the pool's, not connected yet: to where the pool's go, or to where one can listen. */
  newClient(use: 'any' | 'listen', config: ClientConfig = {}): Client {
    return this.#pool.newClient(use, config)
  }

  /** What such a connection is made with. */
  clientConfig(use: 'any' | 'listen'): ClientConfig {
    return this.#pool.clientConfig(use)
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }

  async #prepare(): Promise<void> {
    const { settings, clock } = this
    const opening: Opening = { settings, clock: clock.kind, statements: this.#statements }
    // An index of a large table takes its time.
    await this.#connected({ answerWithinMs: undefined }, async (connection) => {
      admitConnection(connection)
      const found = await look(connection, settings.schema)
      this.instant(found.now)
      if (found.synchronousCommit === 'off') this.#begin = `${BEGIN}; ${DURABLY}`
      admitServer(found)
      const version = await admit(connection, found, opening)
      if (version === SCHEMA_VERSION) return
      if (!settings.migrate) throw refuseToMigrate(settings, version)
      await migrate(connection, opening)
    })
  }

  async #patiently<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt()
      } catch (error) {
        const again = isInterference(error) || isForgotten(error)
        if (!again || tries === MOST_TRIES) throw explained(this.settings.store, error)
      }
      await pause(Math.min(2 ** tries, LONGEST_PAUSE_MS))
    }
  }

  #connected<T>(answering: Answering, body: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#pool.lend(async (client) => {
      const connection = new Connection(client, this.#speech, answering)
      try {
        await this.#checkSchema(connection)
        return await body(connection)
      } catch (error) {
        // A newer version may have taken away what a statement of this one needs.
        if (missesSchema(error)) await this.#assertSchema(connection)
        throw error
      } finally {
        connection.release()
      }
    })
  }

  async #checkSchema(connection: Connection): Promise<void> {
    const now = realScheduler.monotonic()
    if (now - this.#checkedAt < CHECK_SCHEMA_EVERY_MS) return
    this.#checkedAt = now
    await admitStill(connection, this.settings.store)
  }

  /** Throws only what the schema itself says; whether it can be read, the error at hand tells already. */
  async #assertSchema(connection: Connection): Promise<void> {
    const { store } = this.settings
    let refusal: unknown
    await admitStill(connection, store).catch((error: unknown) => {
      refusal = error
    })
    if (refusal instanceof StoreVersionError) throw refusal
  }
}

/**
 * The answer to BEGIN is not waited for, where the connection can do that. If it can't begin, no transaction fails
 * silently: BEGIN fails where nothing may be written, and a setting that fails spoils the transaction.
 */
async function within<T>(
  connection: Connection,
  begin: string,
  body: (connection: Connection) => Promise<T>,
): Promise<T> {
  const begun = connection.command(begin)
  begun.catch(() => {})
  try {
    const result = await body(connection)
    await begun
    const ending = await connection.commit()
    // A statement had failed, and nobody said so.
    if (ending !== 'COMMIT') throw new Error('the transaction was rolled back, as a statement of it had failed')
    return result
  } catch (error) {
    const cause = await begun.then(
      () => error,
      (refusal: unknown) => refusal,
    )
    await connection.rollback()
    throw cause
  }
}

async function pause(longestMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    realScheduler.after(longestMs * realRandom.next(), resolve)
  })
}
