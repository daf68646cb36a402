/**
 * One open connection of the store: prepared statements, transactions that never wait inside SQLite, and errors
 * that say what to do.
 *
 * A transaction runs from BEGIN to COMMIT in one turn of the event loop, so calls of one process never meet inside
 * one; other processes are waited for asynchronously. An error rolls the whole transaction back.
 */
import type { Clock } from '../../core/clock.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { number, text, UnreadableValueError } from '../columns.ts'
import type { Connection, Driver, Statement } from './driver.ts'
import { loadDriver } from './drivers/load.ts'
import { identityOf, inspectFile } from './file.ts'
import type { Opening } from './migrate.ts'
import { admit, migrate } from './migrate.ts'
import { whileBusy } from './patience.ts'
import { explained, isBusy, missesSchema, needsWriting } from './trouble.ts'

export interface DatabaseLocation {
  readonly path: string
  /** What messages call the store. */
  readonly store: string
  readonly clock: Clock
}

/** After this long the runtime is told, which keeps trying and logs. */
const GIVE_UP_AFTER_MS = 1_000
/** Opening takes longer where many processes create one file at the same moment. */
const GIVE_UP_OPENING_AFTER_MS = 10_000

/**
 * synchronous: acknowledged means on disk (better-sqlite3's build would otherwise skip the sync of each commit).
 * fullfsync: on macOS a plain fsync stops at the drive's cache; it does nothing elsewhere.
 * foreign_keys: off, as the store writes parents and children itself and the checks cost a lookup each.
 */
const SETTINGS = `
pragma synchronous = full;
pragma fullfsync = on;
pragma checkpoint_fullfsync = on;
pragma foreign_keys = off;
pragma temp_store = memory;
pragma cache_size = -4096;
pragma journal_size_limit = 67108864;
`
const SCHEMA_COOKIE = 'pragma schema_version'
const NEVER_SEEN = -1

/** Larger files are too slow to check at each opening. */
const CHECKED_BYTES = 4 * 1024 * 1024

export class Database {
  readonly driver: Driver
  readonly clock: Clock
  readonly path: string
  readonly store: string
  readonly #connection: Connection
  readonly #identity: string | undefined
  /** What SQLite counts changes of the schema by, when this version of the library was last seen to fit it. */
  #schemaCookie: number
  readonly #statements = new Map<string, Statement>()

  private constructor(driver: Driver, connection: Connection, { path, store, clock }: DatabaseLocation) {
    this.driver = driver
    this.path = path
    this.store = store
    this.clock = clock
    this.#connection = connection
    this.#identity = identityOf(path)
    this.#schemaCookie = NEVER_SEEN
  }

  /** Opens the file, creating it if need be, and brings its schema up to date. */
  static async open(location: DatabaseLocation): Promise<Database> {
    const driver = await loadDriver(location.store)
    const patience = { isBusy: (error: unknown) => isBusy(driver, error), giveUpAfterMs: GIVE_UP_OPENING_AFTER_MS }
    try {
      await whileBusy(() => inspect(driver, location), patience)
      const connection = await whileBusy(() => connect(driver, location.path), patience)
      const database = new Database(driver, connection, location)
      try {
        await whileBusy(() => database.#migrate(), patience)
      } catch (error) {
        connection.close()
        throw error
      }
      return database
    } catch (error) {
      throw explained(driver, location.store, error)
    }
  }

  /** The statement of this text, prepared once. */
  prepare(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#connection.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Reads, waiting while the file is locked (which is rare and short). */
  read<T>(body: () => T): Promise<T> {
    return this.#patiently(body)
  }

  /** Reads that belong together: all see the same state. */
  snapshot<T>(body: () => T): Promise<T> {
    return this.#patiently(() => this.#within('begin', body))
  }

  /** Runs `body` in one write transaction; it may run again, from the start, if the transaction had no effect. */
  write<T>(body: () => T): Promise<T> {
    return this.#patiently(() => this.#transaction(body))
  }

  /** Another connection to the same file, for SQL of users: foreign keys are checked there, as drivers do. */
  connectAgain(): Database {
    this.#assertInPlace()
    const connection = connect(this.driver, this.path)
    connection.exec('pragma foreign_keys = on')
    const again = new Database(this.driver, connection, this)
    again.#schemaCookie = this.#schemaCookie
    return again
  }

  /** Begins a write transaction that lasts. Throws at once if another connection is in the way. */
  begin(): void {
    this.#assertInPlace()
    this.prepare('begin immediate').run()
    try {
      this.#assertKnownSchema()
    } catch (error) {
      this.rollback()
      throw error
    }
  }

  rollback(): void {
    try {
      this.prepare('rollback').run()
    } catch {
      // SQLite rolls back by itself on some errors (a full disk), and then there is no transaction to end.
    }
  }

  get native(): unknown {
    return this.#connection.native
  }

  close(): void {
    this.#statements.clear()
    this.#connection.close()
  }

  async #patiently<T>(attempt: () => T): Promise<T> {
    try {
      return await whileBusy(attempt, {
        isBusy: (error) => isBusy(this.driver, error),
        giveUpAfterMs: GIVE_UP_AFTER_MS,
      })
    } catch (error) {
      // A newer version may have taken away what a statement of this one needs.
      if (missesSchema(this.driver, error)) this.#assertSchema()
      throw explained(this.driver, this.store, error)
    }
  }

  #transaction<T>(body: () => T): T {
    this.#assertInPlace()
    return this.#within('begin immediate', () => {
      this.#assertKnownSchema()
      return body()
    })
  }

  #within<T>(begin: string, body: () => T): T {
    this.prepare(begin).run()
    try {
      const result = body()
      this.prepare('commit').run()
      return result
    } catch (error) {
      this.rollback()
      throw error
    }
  }

  /** Into a file without a name SQLite would go on writing, and acknowledge what nobody can ever read. */
  #assertInPlace(): void {
    if (identityOf(this.path) === this.#identity) return
    const problem = 'its file was moved, deleted or replaced while it was open; put it back, or restart the process'
    throw new StoreUnavailableError({ store: this.store, problem })
  }

  #migrate(): void {
    this.#assertInPlace()
    this.#within('begin immediate', () => migrate(this.#connection, this.#opening))
    this.#assertSchema()
  }

  #assertKnownSchema(): void {
    if (number(this.prepare(SCHEMA_COOKIE).get()?.[0]) !== this.#schemaCookie) this.#assertSchema()
  }

  /** Throws if a newer version of the library has migrated the file since. Others may change the schema, too. */
  #assertSchema(): void {
    const cookie = number(this.prepare(SCHEMA_COOKIE).get()?.[0])
    admit(this.#connection, this.#opening)
    // Read before: what changes from then on is another.
    this.#schemaCookie = cookie
  }

  get #opening(): Opening {
    return { store: this.store, clock: this.clock.kind }
  }
}

/** Refuses what is not ours to use, through a connection that can't write. */
function inspect(driver: Driver, { path, store, clock }: DatabaseLocation): void {
  if (inspectFile(path, store) === 'new') return
  try {
    const connection = driver.connect(path, { readOnly: true })
    try {
      admit(connection, { store, clock: clock.kind })
      checkPages(connection)
    } finally {
      connection.close()
    }
  } catch (error) {
    // What a crash left behind can't be read without writing; the migration looks again.
    if (!needsWriting(driver, error)) throw error
  }
}

function checkPages(connection: Connection): void {
  const [pages] = connection.prepare('pragma page_count').get() ?? []
  const [pageBytes] = connection.prepare('pragma page_size').get() ?? []
  if (number(pages) * number(pageBytes) > CHECKED_BYTES) return
  const [verdict] = connection.prepare('pragma quick_check(1)').get() ?? []
  if (verdict !== 'ok') throw new UnreadableValueError(text(verdict))
}

function connect(driver: Driver, path: string): Connection {
  const connection = driver.connect(path, { readOnly: false })
  try {
    const [mode] = connection.prepare('pragma journal_mode = wal').get() ?? []
    if (mode !== 'wal') throw new UnreadableValueError(`its journal mode stays ${String(mode)}, it can't be wal`)
    connection.exec(SETTINGS)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}
