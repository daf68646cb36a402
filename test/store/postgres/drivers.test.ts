/** `engine.startSql` through the drivers that people use, each in transactions of its own beside a table of theirs. */
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleJs } from 'drizzle-orm/postgres-js'
import knexOf from 'knex'
import { Kysely, sql as kyselySql, PostgresDialect } from 'kysely'
import { Engine, queue, workflow } from 'perdure'
import { postgres } from 'perdure/postgres'
import pg from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SqlCall } from '../../../src/store/contract.ts'
import { type FreshSchema, freshSchema, run, serverUrl } from './server.ts'

interface Answer {
  readonly id: string
  readonly newly_submitted: boolean
  readonly conflict: string | null
}
/** The statement as the driver takes it, beside one of the user's own. */
interface Transaction {
  note(text: string): Promise<unknown>
  start(call: SqlCall): Promise<unknown>
}
interface Driver {
  readonly name: string
  /** Commits, unless the body throws. */
  open(url: string, table: string): Promise<OpenDriver>
}
interface OpenDriver {
  transaction(body: (tx: Transaction) => Promise<void>): Promise<void>
  close(): Promise<unknown>
}

const DRIVERS: readonly Driver[] = [
  {
    name: 'pg',
    open: async (url, table) => {
      const pool = new pg.Pool({ connectionString: url })
      return {
        transaction: async (body) => {
          const client = await pool.connect()
          try {
            await client.query('begin')
            await body({
              note: (text) => client.query(`insert into ${table} values ($1)`, [text]),
              start: async ({ text, values }) => (await client.query(text, values)).rows,
            })
            await client.query('commit')
          } catch (error) {
            await client.query('rollback')
            throw error
          } finally {
            client.release()
          }
        },
        close: () => pool.end(),
      }
    },
  },
  {
    name: 'postgres',
    open: async (url, table) => {
      const sql = postgresJs(url)
      return {
        transaction: async (body) => {
          await sql.begin(async (tx) => {
            await body({
              note: (text) => tx`insert into ${tx.unsafe(table)} values (${text})`,
              start: async ({ strings, values }) => [...(await tx(strings, ...values))],
            })
          })
        },
        close: () => sql.end(),
      }
    },
  },
  {
    name: 'kysely',
    open: async (url, table) => {
      const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }) })
      return {
        transaction: (body) =>
          db.transaction().execute((tx) =>
            body({
              note: (text) => kyselySql`insert into ${kyselySql.raw(table)} values (${text})`.execute(tx),
              start: async ({ strings, values }) => (await kyselySql(strings, ...values).execute(tx)).rows,
            }),
          ),
        close: () => db.destroy(),
      }
    },
  },
  {
    name: 'drizzle-orm, over pg',
    open: async (url, table) => {
      const pool = new pg.Pool({ connectionString: url })
      const db = drizzle({ client: pool })
      return {
        transaction: (body) =>
          db.transaction((tx) =>
            body({
              note: (text) => tx.execute(drizzleSql`insert into ${drizzleSql.raw(table)} values (${text})`),
              start: async ({ strings, values }) => (await tx.execute(drizzleSql(strings, ...values))).rows,
            }),
          ),
        close: () => pool.end(),
      }
    },
  },
  {
    name: 'drizzle-orm, over postgres',
    open: async (url, table) => {
      const client = postgresJs(url)
      const db = drizzleJs({ client })
      return {
        transaction: (body) =>
          db.transaction((tx) =>
            body({
              note: (text) => tx.execute(drizzleSql`insert into ${drizzleSql.raw(table)} values (${text})`),
              start: async ({ strings, values }) => [...(await tx.execute(drizzleSql(strings, ...values)))],
            }),
          ),
        close: () => client.end(),
      }
    },
  },
  {
    name: 'knex',
    open: async (url, table) => {
      const knex = knexOf({ client: 'pg', connection: url })
      return {
        transaction: (body) =>
          knex.transaction((tx) =>
            body({
              note: (text) => tx.raw(`insert into ${table} values (?)`, [text]),
              start: async ({ strings, values }) => (await tx.raw(strings.join('?'), values)).rows,
            }),
          ),
        close: () => knex.destroy(),
      }
    },
  },
]

const greet = workflow('greet', async (_, name: string) => `hello ${name}`)
const engines = (schema: FreshSchema) =>
  new Engine({
    store: postgres(schema.url, { schema: schema.schema }),
    definitions: [greet],
    queues: [queue('mail'), queue('tenants', { partitioned: true })],
  })

/** A name in which some drivers might look for placeholders. */
const STRANGE = `It's a "schema"? $1 :x`
const INPUT = `O'Hara "?" $1 :a \\ ü\u0000🎉`

describe.each(DRIVERS)('$name', ({ open }) => {
  let schema: FreshSchema
  let engine: ReturnType<typeof engines>
  let driver: OpenDriver
  const table = `notes_${process.pid}_${Math.random().toString(36).slice(2)}`

  beforeAll(async () => {
    const fresh = await freshSchema()
    schema = { ...fresh, schema: `${STRANGE} ${table}` }
    engine = engines(schema)
    await run(`create table ${table} (text text)`)
    await engine.launch()
    driver = await open(await serverUrl(), table)
  })
  afterAll(async () => {
    await driver?.close()
    await engine?.shutdown()
    await run(`drop table ${table}`)
    await run(`drop schema "${schema.schema.replaceAll('"', '""')}" cascade`)
  })

  const notes = async (): Promise<unknown[]> =>
    (await run(`select text from ${table} order by text`)).rows.map(({ text }) => text)

  test('a run is there and is run when the transaction has been committed', async () => {
    const answers: unknown[] = []
    const plain = await engine.startSql(greet, INPUT)
    const keyed = await engine.startSql(greet, 'lane', { queue: 'tenants', partitionKey: 'k', id: `keyed ${table}` })
    await driver.transaction(async (tx) => {
      await tx.note('committed')
      answers.push(await tx.start(plain), await tx.start(keyed))
      expect(await engine.runs.get(plain.id)).toBeUndefined()
    })
    const created: Omit<Answer, 'id'> = { newly_submitted: true, conflict: null }
    expect(answers).toEqual([[{ id: plain.id, ...created }], [{ id: keyed.id, ...created }]])
    expect(await engine.handle(greet, plain.id).result({ timeout: '20s' })).toBe(`hello ${INPUT}`)
    expect(await engine.handle(greet, keyed.id).result({ timeout: '20s' })).toBe('hello lane')
    expect(await notes()).toContain('committed')
  })

  test('nothing is there after a rollback', async () => {
    const call = await engine.startSql(greet, 'nobody', { queue: 'mail' })
    const failure = new Error('changed my mind')
    await expect(
      driver.transaction(async (tx) => {
        await tx.note('rolled back')
        await tx.start(call)
        throw failure
      }),
    ).rejects.toBe(failure)
    expect(await engine.runs.get(call.id)).toBeUndefined()
    expect(await notes()).not.toContain('rolled back')
  })

  test('a conflict is told, and what else the transaction does is committed', async () => {
    const id = `known ${table}`
    await engine.start(greet, 'first', { id })
    const told: unknown[] = []
    await driver.transaction(async (tx) => {
      told.push(await tx.start(await engine.startSql(greet, 'first', { id })))
      told.push(await tx.start(await engine.startSql(greet, 'other', { id })))
      await tx.note('after a conflict')
    })
    expect(told).toEqual([
      [{ id, newly_submitted: false, conflict: null }],
      [{ id, newly_submitted: false, conflict: 'mismatch' }],
    ])
    expect(await notes()).toContain('after a conflict')
  })

  test('or raised, so that nothing is', async () => {
    const id = `raised ${table}`
    await engine.start(greet, 'first', { id })
    const call = await engine.startSql(greet, 'other', { id, onConflict: 'raise' })
    await expect(
      driver.transaction(async (tx) => {
        await tx.note('before an error')
        await tx.start(call)
      }),
    ).rejects.toThrow()
    expect(await notes()).not.toContain('before an error')
  })
})
