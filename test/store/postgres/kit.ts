/**
 * Databases for the conformance kit, which wants hundreds: schemas and connections are used again, as 20 tables take
 * longer to make than most tests to run, and a new connection longer to plan its statements. What a test left is
 * deleted, so that each finds its database empty.
 *
 * Stores are over a pool that is given; those with one of their own are tested elsewhere, as is the making of tables.
 */
import pg from 'pg'
import type { Clock } from '../../../src/core/clock.ts'
import type { ConformanceDatabase } from '../../../src/store/conformance/index.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { type FreshSchema, schemaOn, serverUrl } from './server.ts'

/** By the kind of clock, as a schema is made for one. */
const free: Readonly<Record<Clock['kind'], FreshSchema[]>> = { mock: [], real: [] }
let shared: pg.Pool | undefined

/** Without a clock its stores have that of the database. */
export async function kitDatabase(clock?: Clock): Promise<ConformanceDatabase> {
  return kitDatabaseOn(await serverUrl(), clock)
}

export function kitDatabaseOn(url: string, clock?: Clock): ConformanceDatabase {
  const ofKind = free[clock?.kind ?? 'real']
  const fresh = ofKind.pop() ?? schemaOn(url)
  shared ??= new pg.Pool({
    connectionString: url,
    max: 20,
    pipeline: true,
    allowExitOnIdle: true,
    idleTimeoutMillis: 60_000,
  })
  const pool = shared
  return {
    connect: () => postgres(pool, { schema: fresh.schema, ...(clock === undefined ? {} : { clock }) }),
    destroy: async () => {
      await empty(pool, fresh.schema)
      ofKind.push(fresh)
    },
  }
}

const TABLES = `select tablename from pg_tables where schemaname = $1 and tablename <> 'meta'`

async function empty(pool: pg.Pool, schema: string): Promise<void> {
  const { rows } = await pool.query<{ readonly tablename: string }>(TABLES, [schema])
  const deletions = rows.map(({ tablename }) => `delete from "${schema}".${tablename}`)
  await pool.query([...deletions, `select setval('"${schema}".places', 1, false)`].join(';'))
}
