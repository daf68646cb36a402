/** Schemas, and the store's way to them, for a test; gone when it ends. */
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import type { PostgresOptions } from '../../../src/store/postgres/options.ts'
import { checkSettings } from '../../../src/store/postgres/options.ts'
import { type FreshSchema, freshSchema } from './server.ts'

export async function emptySchema(): Promise<FreshSchema> {
  const fresh = await freshSchema()
  onTestFinished(() => fresh.destroy())
  return fresh
}

interface Asked extends PostgresOptions {
  readonly connection?: string | pg.Pool | pg.PoolConfig
}

/** In a schema of its own, unless one is given. */
export async function openDatabase({ connection, ...options }: Asked = {}): Promise<Database> {
  const { url, schema } = options.schema === undefined ? await emptySchema() : { url: '', schema: options.schema }
  const settings = checkSettings(connection ?? url, { schema, ...options })
  const database = await Database.open({ settings, clock: options.clock ?? new DatabaseClock() })
  onTestFinished(() => database.close())
  return database
}

/** A connection of somebody else. */
export async function stranger(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end())
  return client
}
