/**
 * The schema of a database and who may use it. Migrations are numbered and forward-only; each runs in one
 * transaction with the note that it ran, so processes that open a file at the same moment take turns and all but
 * the first find nothing to do.
 *
 * Our tables carry the prefix `perdure_`, so they can live in an application's own database, beside its tables;
 * `application_id` and `user_version` belong to the application and stay as they are.
 */
import type { Clock } from '../../core/clock.ts'
import { StoreClockError, StoreCorruptError, StoreVersionError } from '../../core/errors.ts'
import { number, text } from '../columns.ts'
import type { Connection } from './driver.ts'
import { MIGRATION_0001 } from './migrations/0001.ts'
import { MIGRATION_0002 } from './migrations/0002.ts'
import { MIGRATION_0003 } from './migrations/0003.ts'

/** In order: migration n, counted from 1, leads to version n. */
const MIGRATIONS: readonly string[] = [MIGRATION_0001, MIGRATION_0002, MIGRATION_0003]
export const SCHEMA_VERSION = MIGRATIONS.length

const HAS_META = `select count(*) from sqlite_schema where type = 'table' and name = 'perdure_meta'`
const READ_META = `select name, value from perdure_meta where name in ('schema_version', 'clock')`
const CREATE_META = 'create table perdure_meta (name text primary key, value text not null) without rowid'
const WRITE_META =
  'insert into perdure_meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value'

export interface Opening {
  /** What messages call the store. */
  readonly store: string
  readonly clock: Clock['kind']
}

/** Throws unless this version of the library, on this kind of clock, may use the database. Writes nothing. */
export function admit(connection: Connection, { store, clock }: Opening): { readonly version: number } {
  const [tables] = connection.prepare(HAS_META).get() ?? []
  if (number(tables) === 0) return { version: 0 }
  const meta = new Map(
    connection
      .prepare(READ_META)
      .all()
      .map(([name, value]) => [text(name), text(value)]),
  )
  const version = Number(meta.get('schema_version'))
  if (!Number.isSafeInteger(version) || version < 1) {
    throw new StoreCorruptError({ store, problem: 'its table perdure_meta names no schema version' })
  }
  if (version > SCHEMA_VERSION) throw new StoreVersionError({ store, found: version, supported: SCHEMA_VERSION })
  const recorded = meta.get('clock') ?? 'unknown'
  if (recorded !== clock) throw new StoreClockError({ store, recorded, given: clock })
  return { version }
}

/** Brings the schema up to date. The caller holds the write lock, in a transaction that it commits. */
export function migrate(connection: Connection, opening: Opening): void {
  const { version } = admit(connection, opening)
  if (version === SCHEMA_VERSION) return
  if (version === 0) connection.exec(CREATE_META)
  for (const migration of MIGRATIONS.slice(version)) connection.exec(migration)
  const write = connection.prepare(WRITE_META)
  write.run('schema_version', String(SCHEMA_VERSION))
  if (version === 0) write.run('clock', opening.clock)
}
