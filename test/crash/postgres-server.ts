/** A PostgreSQL whose commits are on disk when they are acknowledged, for the tests of one file, and schemas in it. */
import pg from 'pg'
import { afterAll, onTestFinished } from 'vitest'
import { startServer, type TestServer } from '../store/postgres/server.ts'
import type { PostgresSpec } from './store-spec.ts'

/** The full form of these tests takes minutes; `npm test` runs a short one of each. */
export const FULL = process.env['PERDURE_CRASH'] === 'full'

export interface DurableServer extends TestServer {
  /** A connection of a user's, until the test ends. */
  connect(): Promise<pg.Client>
  /** Runs statements beside the stores. */
  sql(text: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
}

/** Stopped when the file is done. */
export async function durableServer(): Promise<DurableServer> {
  const server = await startServer({ durable: true })
  const pool = new pg.Pool({ connectionString: server.url, max: 4, allowExitOnIdle: true })
  pool.on('error', () => {})
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }
  return { ...server, connect, sql: async (text, values = []) => (await pool.query(text, [...values])).rows }
}

let schemas = 0

/** Of a schema that is not there yet; `changes` in how a process opens it. */
export function freshSpec({ url }: TestServer, changes: Partial<PostgresSpec> = {}): PostgresSpec {
  schemas += 1
  return { url, schema: `Crash-${schemas}`, ...changes }
}
