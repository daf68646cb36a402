/** A schema with the tables and functions of the store, and sessions of callers beside it. */
import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import type { NewQueue } from '../../../src/store/contract.ts'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import { checkSettings } from '../../../src/store/postgres/options.ts'
import { registerQueues } from '../../../src/store/postgres/queues.ts'
import { freshSchema, run as runOnServer } from './server.ts'

export interface StartSchema {
  readonly schema: string
  readonly database: Database
  /** Runs a statement in which `perdure.` stands for the schema, and commits it. */
  run(sql: string, ...values: readonly unknown[]): Promise<readonly pg.QueryResultRow[]>
  /** A session of a caller's own. */
  session(): Promise<CallerSession>
  register(queue: Partial<NewQueue> & { readonly name: string }): Promise<void>
}
export interface CallerSession {
  readonly client: pg.Client
  run(sql: string, ...values: readonly unknown[]): Promise<readonly pg.QueryResultRow[]>
}

export interface StartSchemaOptions {
  readonly schema?: string
  readonly clock?: Clock
  /** When it is removed. Default: at the end of the test. */
  readonly atEnd?: (remove: () => Promise<void>) => void
}

export async function startSchema(options: StartSchemaOptions = {}): Promise<StartSchema> {
  const fresh = await freshSchema()
  const { schema = fresh.schema, clock = new DatabaseClock(), atEnd = onTestFinished } = options
  const database = await Database.open({ settings: checkSettings(fresh.url, { schema }), clock })
  atEnd(async () => {
    await database.close()
    await runOnServer(`drop schema if exists "${schema.replaceAll('"', '""')}" cascade`)
  })
  const run = async (sql: string, ...values: readonly unknown[]): Promise<readonly pg.QueryResultRow[]> =>
    (await runOnServer(database.render(sql), values)).rows
  return {
    schema,
    database,
    run,
    session: async () => {
      const client = new pg.Client({ connectionString: fresh.url })
      await client.connect()
      onTestFinished(() => client.end())
      return { client, run: async (sql, ...values) => (await client.query(database.render(sql), [...values])).rows }
    },
    register: async (queue) => {
      await registerQueues(database, [{ ...UNLIMITED, ...queue }])
    },
  }
}

const UNLIMITED: Omit<NewQueue, 'name'> = {
  globalConcurrency: null,
  releaseWhileWaiting: false,
  rateLimit: null,
  priorityEnabled: false,
  partitioned: false,
  retention: null,
  configVersion: 0,
}
