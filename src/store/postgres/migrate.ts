/**
 * The schema of a database and who may use it. Migrations are numbered and forward-only; all that are missing run in
 * one transaction, under a lock that processes which open a database at the same moment take in turns: all but the
 * first find nothing to do.
 *
 * `meta` notes the version of the schema, and the oldest version of the library (by the schema it knows) that may go on
 * working with it: so old processes run on while new ones migrate, and are refused only what they can't do.
 */
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, StoreClockError, StoreCorruptError, StoreVersionError } from '../../core/errors.ts'
import { realRandom } from '../../core/random.ts'
import { realScheduler } from '../../core/scheduler.ts'
import { flag, number, text } from '../columns.ts'
import type { Connection } from './connection.ts'
import { MIGRATION_0001 } from './migrations/0001.ts'
import { START_FUNCTIONS } from './migrations/start.ts'
import type { Settings } from './options.ts'
import { NOW, type Session } from './session.ts'
import { quoted, type Statements } from './statements.ts'
import { sqlState } from './trouble.ts'
import { channelOf } from './watch.ts'

interface Migration {
  readonly sql: string
  /** The oldest schema version that a library may know and still work with the schema that this one makes. */
  readonly oldestCompatible: number
}

/** In order: migration n, counted from 1, leads to version n. */
const MIGRATIONS: readonly Migration[] = [{ sql: MIGRATION_0001 + START_FUNCTIONS, oldestCompatible: 1 }]
export const SCHEMA_VERSION = MIGRATIONS.length

const OLDEST_SERVER = 14
const VERSION_UNIT = 10_000

/** Everything else waits behind a lock that waits: so it gives up soon, and tries again. */
const LOCK_TIMEOUT_MS = 2_000
const GIVE_UP_AFTER_MS = 60_000
const LONGEST_PAUSE_MS = 250
/** A lock, a deadlock; somebody else has just created the schema or a part of it. */
const WORTH_ANOTHER_TRY: ReadonlySet<string> = new Set(['55P03', '40P01', '42P06', '23505'])
const DUPLICATE_TABLE: ReadonlySet<string> = new Set(['42P07', '42710', '42723'])
const NO_RIGHTS = '42501'

export interface Opening {
  readonly settings: Settings
  readonly clock: Clock['kind']
  readonly statements: Statements
}

/** What a database says of itself when it is opened. */
export interface Found {
  readonly serverVersion: number
  readonly serverName: string
  readonly encoding: string
  readonly synchronousCommit: string
  readonly arrayNulls: string
  readonly now: unknown
  readonly hasSchema: boolean
  readonly hasMeta: boolean
  readonly user: string
  readonly database: string
}

const LOOK = `
select pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('server_version'),
  pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('synchronous_commit'), ${NOW},
  exists (select from pg_catalog.pg_namespace where nspname = $1),
  exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relname = 'meta'),
  current_user::text, pg_catalog.current_database()::text, pg_catalog.current_setting('array_nulls')`
const READ_META = 'select name, value from perdure.meta'

export async function look(session: Session, schema: string): Promise<Found> {
  const [row = []] = await session.query(LOOK, [schema])
  return {
    serverVersion: number(row[0]),
    serverName: text(row[1]),
    encoding: text(row[2]),
    synchronousCommit: text(row[3]),
    now: row[4],
    hasSchema: flag(row[5]),
    hasMeta: flag(row[6]),
    user: text(row[7]),
    database: text(row[8]),
    arrayNulls: text(row[9]),
  }
}

/** Throws if what comes over a connection could not be read. */
export function admitConnection({ isBinary }: Pick<Connection, 'isBinary'>): void {
  if (!isBinary) return
  const problem = 'its connections have the setting binary: true, with which values do not come as they are stored'
  throw new ConfigurationError({ option: 'postgres.connection', problem, allowed: 'connections without it' })
}

/** Throws unless a store may be in this database at all. */
export function admitServer({ serverVersion, serverName, encoding, arrayNulls }: Found): void {
  if (arrayNulls === 'off') {
    const problem =
      'array_nulls is off there, with which null would be stored as a text. Set it on, for this user at least'
    throw new ConfigurationError({ option: 'postgres.connection', problem })
  }
  if (serverVersion < OLDEST_SERVER * VERSION_UNIT) {
    const problem = `the server is PostgreSQL ${serverName}. Upgrade it, or use another`
    throw new ConfigurationError({
      option: 'postgres.connection',
      problem,
      allowed: `PostgreSQL ${OLDEST_SERVER} or newer`,
    })
  }
  if (encoding === 'UTF8') return
  const problem = `the database has the encoding ${encoding}, which can't hold every text. Create one with UTF8`
  throw new ConfigurationError({ option: 'postgres.connection', problem })
}

/** The version of the schema; throws unless this version of the library, on this kind of clock, may open it. */
export async function admit(session: Session, { hasMeta }: Found, opening: Opening): Promise<number> {
  if (!hasMeta) return 0
  const { store } = opening.settings
  const meta = await readMeta(session)
  const version = versionIn(meta, 'schema_version')
  if (version === undefined) {
    throw new StoreCorruptError({ store, problem: 'its table meta names no schema version' })
  }
  if (version > SCHEMA_VERSION) throw new StoreVersionError({ store, found: version, supported: SCHEMA_VERSION })
  const recorded = meta.get('clock') ?? 'unknown'
  if (recorded !== opening.clock) throw new StoreClockError({ store, recorded, given: opening.clock })
  return version
}

/** Throws if a newer version of the library has made of the schema, since it was opened, what this one can't use. */
export async function admitStill(session: Session, store: string): Promise<void> {
  const meta = await readMeta(session)
  const needed = versionIn(meta, 'oldest_compatible') ?? 0
  if (needed <= SCHEMA_VERSION) return
  const found = versionIn(meta, 'schema_version') ?? needed
  throw new StoreVersionError({ store, found, supported: SCHEMA_VERSION })
}

/** Says what to do about a schema that is not there, or is older than this version needs. */
export function refuseToMigrate({ schema }: Settings, version: number): ConfigurationError {
  const state =
    version === 0
      ? `the schema ${quoted(schema)} has no tables of perdure`
      : `the schema ${quoted(schema)} is of version ${version}`
  const problem = `${state}, this version of perdure needs ${SCHEMA_VERSION}, and migrate: false changes nothing. Call postgres(url, { schema }).migrate() once, as a user who may create tables`
  return new ConfigurationError({ option: 'postgres.migrate', problem })
}

/** Brings the schema up to date. */
export async function migrate(connection: Connection, opening: Opening): Promise<void> {
  const start = realScheduler.monotonic()
  for (;;) {
    try {
      await migrateOnce(connection, opening)
      return
    } catch (error) {
      await connection.rollback()
      const again = WORTH_ANOTHER_TRY.has(sqlState(error) ?? '')
      if (!again || realScheduler.monotonic() - start >= GIVE_UP_AFTER_MS) throw error
    }
    await new Promise<void>((resolve) => {
      realScheduler.after(LONGEST_PAUSE_MS * realRandom.next(), resolve)
    })
  }
}

async function migrateOnce(connection: Connection, opening: Opening): Promise<void> {
  const { settings } = opening
  await connection.command(
    `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; ` +
      `SET LOCAL statement_timeout = 0; SET LOCAL synchronous_commit = on`,
  )
  await connection.query(LOCK, [settings.schema])
  const found = await look(connection, settings.schema)
  const version = await admit(connection, found, opening)
  if (version < SCHEMA_VERSION) {
    try {
      await connection.command(steps(opening, found, version))
    } catch (error) {
      throw explainedStep(error, settings, found)
    }
  }
  await connection.command('COMMIT')
}

const LOCK = `select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('perdure migration of ' || $1, 0))`
const CREATE_META = 'create table perdure.meta (name text collate "C" primary key, value text not null)'

/** One text, so that the whole is one round trip. */
function steps({ settings, clock, statements }: Opening, { hasSchema }: Found, version: number): string {
  const oldestCompatible = MIGRATIONS.at(-1)?.oldestCompatible ?? SCHEMA_VERSION
  const creation = hasSchema ? [] : [`create schema ${quoted(settings.schema)}`]
  return [
    ...creation,
    ...[...(version === 0 ? [CREATE_META] : []), ...MIGRATIONS.slice(version).map(({ sql }) => sql)].map((sql) =>
      statements.render(sql),
    ),
    ...(version === 0 ? [statements.render(note('clock', clock))] : []),
    statements.render(note('schema_version', String(SCHEMA_VERSION))),
    statements.render(note('oldest_compatible', String(oldestCompatible))),
    statements.render(note('channel', channelOf(settings.schema))),
  ].join(';\n')
}

function note(name: string, value: string): string {
  return `insert into perdure.meta (name, value) values ('${name}', '${value.replaceAll("'", "''")}')
on conflict (name) do update set value = excluded.value`
}

function explainedStep(error: unknown, { schema }: Settings, { user, database, hasSchema }: Found): unknown {
  const state = sqlState(error) ?? ''
  const cause = { cause: error }
  if (state === NO_RIGHTS) {
    const what = hasSchema ? `tables in the schema ${quoted(schema)}` : `the schema ${quoted(schema)}`
    const problem =
      `the user ${quoted(user)} may not create ${what} of the database ${quoted(database)}. As its owner, run: ` +
      (hasSchema
        ? `grant usage, create on schema ${quoted(schema)} to ${quoted(user)}`
        : `create schema ${quoted(schema)} authorization ${quoted(user)}`)
    return new ConfigurationError({ option: 'postgres.schema', problem }, cause)
  }
  if (!DUPLICATE_TABLE.has(state)) return error
  const reason = error instanceof Error ? error.message : state
  const problem = `the schema ${quoted(schema)} holds something else of the same name: ${reason}. Give another schema`
  return new ConfigurationError({ option: 'postgres.schema', problem }, cause)
}

async function readMeta(session: Session): Promise<ReadonlyMap<string, string>> {
  const rows = await session.query(READ_META)
  return new Map(rows.map((row) => [text(row[0]), text(row[1])]))
}

function versionIn(meta: ReadonlyMap<string, string>, name: string): number | undefined {
  const version = Number(meta.get(name))
  return Number.isSafeInteger(version) && version >= 1 ? version : undefined
}
