/** `ctx.transaction` on PostgreSQL: levels of isolation, connections, and what others do meanwhile. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Engine, type SqlTransaction, type WorkflowContext, workflow } from '../../../src/index.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { door, ended, notebook, refusal, Tally, until } from '../../api/engine/support.ts'
import { describeTransactions, type SqlStore } from '../transaction-spec.ts'
import { emptySchema, stranger } from './databases.ts'
import { Relay } from './relay.ts'
import { run as sql } from './server.ts'

interface Opened extends SqlStore {
  readonly url: string
  readonly schema: string
  /** Of the user's table. */
  readonly ledger: string
  readonly pool: pg.Pool
}

/** The user's table is found by the search path of the connections, as an application's would be. */
async function open(): Promise<Opened> {
  const { url, schema } = await emptySchema()
  const app = `${schema}-app`
  const ledger = `"${app}".ledger`
  await sql(`create schema "${app}"`)
  await sql(`create table ${ledger} (item text, n integer)`)
  onTestFinished(async () => void (await sql(`drop schema "${app}" cascade`)))
  const pool = new pg.Pool({ connectionString: url, max: 10, options: `-c search_path="${app}"` })
  onTestFinished(() => pool.end())
  const query: SqlStore['query'] = async (text) => (await pool.query<Record<string, unknown>>(text)).rows
  return {
    ...{ url, schema, ledger, pool, query },
    store: postgres(pool, { schema }),
    again: () => postgres({ connectionString: url, options: `-c search_path="${app}"` }, { schema }),
  }
}

describeTransactions(open, (n) => `$${n}`)

type Body = (ctx: WorkflowContext<unknown>, input: string) => Promise<unknown>

async function stage(body: Body) {
  const opened = await open()
  const flow = workflow('flow', body)
  const logger = notebook()
  const engine = ended(new Engine({ store: opened.store, definitions: [flow], logger }))
  await engine.launch()
  const items = async () => (await opened.query('select item from ledger order by item')).map(({ item }) => item)
  return { ...opened, logger, engine, flow, items, start: (input = 'in') => engine.start(flow, input) }
}

const insert = (tx: SqlTransaction, item: string) => tx.run('insert into ledger values ($1, 1)', [item])

describe('levels of isolation', () => {
  it('W25: of two serializable increments neither is lost, and neither uses up an attempt', async () => {
    const tally = new Tally()
    const { engine, flow, query } = await stage((ctx) =>
      ctx.transaction('add', { isolationLevel: 'serializable' }, async (tx) => {
        tally.add('called')
        const [row] = await tx.query<{ n: number }>("select n from ledger where item = 'sum'")
        await setTimeout(5)
        await tx.run("update ledger set n = $1 where item = 'sum'", [(row?.n ?? 0) + 1])
      }),
    )
    await query("insert into ledger values ('sum', 0)")
    const runs = await Promise.all(Array.from({ length: 8 }, (_, n) => engine.start(flow, `${n}`)))
    await Promise.all(runs.map((run) => run.result()))
    expect(await query('select n from ledger')).toEqual([{ n: 8 }])
    expect(tally.of('called')).toBeGreaterThan(8)
  })

  it.each(['read committed', 'repeatable read', 'serializable'] as const)(
    '%s: a renewal of the lease meanwhile is no obstacle',
    async (isolationLevel) => {
      const tally = new Tally()
      const { start, items, url, schema } = await stage((ctx) =>
        ctx.transaction('put', { isolationLevel }, async (tx) => {
          tally.add('called')
          const [row] = await tx.query<{ level: string }>("select current_setting('transaction_isolation') as level")
          const other = await stranger(url)
          await other.query(`update "${schema}".runs set lease_until = lease_until + 1`)
          await insert(tx, 'a')
          return row?.level
        }),
      )
      expect(await (await start()).result()).toBe(isolationLevel)
      expect(await items()).toEqual(['a'])
      expect(tally.all).toEqual({ called: 1 })
    },
  )

  it.each(['repeatable read', 'serializable'] as const)('%s: a lost claim rolls the body back', async (level) => {
    const tally = new Tally()
    const { start, items, url, schema } = await stage((ctx) =>
      ctx.transaction('put', { isolationLevel: level }, async (tx) => {
        await insert(tx, `call ${tally.add('called')}`)
        if (tally.of('called') > 1) return
        const other = await stranger(url)
        await other.query(
          `update "${schema}".runs set status = 'ENQUEUED', token = null, owner = null, lease_until = null`,
        )
      }),
    )
    await (await start()).result()
    expect(await items()).toEqual(['call 2'])
  })
})

describe('others', () => {
  it('W24: that deadlock with a transaction get it called again, at no attempt', async () => {
    const tally = new Tally()
    const { start, query, url, ledger } = await stage((ctx) =>
      ctx.transaction('both', async (tx) => {
        await tx.run("update ledger set n = n + 1 where item = 'a'")
        if (tally.add('called') === 1) {
          const other = await stranger(url)
          await other.query(
            `begin; set local deadlock_timeout = '1h'; update ${ledger} set n = n + 10 where item = 'b'`,
          )
          const waiting = other.query(`update ${ledger} set n = n + 10 where item = 'a'`)
          void waiting.then(() => other.query('commit'))
          await setTimeout(50)
        }
        await tx.run("update ledger set n = n + 1 where item = 'b'")
      }),
    )
    await query("insert into ledger values ('a', 0), ('b', 0)")
    await (await start()).result()
    expect(await query('select item, n from ledger order by item')).toEqual([
      { item: 'a', n: 11 },
      { item: 'b', n: 11 },
    ])
    expect(tally.all).toEqual({ called: 2 })
  })

  it('W24: that end its connection get it called again, at no attempt', async () => {
    const tally = new Tally()
    const { start, items } = await stage((ctx) =>
      ctx.transaction('put', async (tx) => {
        await insert(tx, `call ${tally.add('called')}`)
        if (tally.of('called') > 1) return
        const [row] = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
        await sql('select pg_terminate_backend($1)', [row?.pid])
        await tx.query('select 1')
      }),
    )
    await (await start()).result()
    expect(await items()).toEqual(['call 2'])
    expect(tally.all).toEqual({ called: 2 })
  })

  it('that cancel the run: what is open is rolled back, a statement under way is stopped', async () => {
    const begun = door()
    const { start, items, query } = await stage((ctx) =>
      ctx.transaction('put', async (tx) => {
        await insert(tx, 'a')
        begun.open()
        await tx.query('select pg_sleep(60)')
      }),
    )
    const run = await start()
    await begun.opened
    await setTimeout(50)
    const before = performance.now()
    expect(await run.cancel()).toBe(true)
    await refusal(run.result())
    expect(performance.now() - before).toBeLessThan(1_000)
    expect(await items()).toEqual([])
    const sleeping = "select 1 from pg_stat_activity where query like '%pg_sleep(60)' and state = 'active'"
    await until(async () => (await query(sleeping)).length === 0)
  })

  it('that start many transactions wait for connections, and the engine goes on', async () => {
    const { engine, flow, items } = await stage((ctx, input) =>
      ctx.transaction('put', async (tx) => {
        await insert(tx, input)
        await setTimeout(20)
      }),
    )
    const runs = await Promise.all(Array.from({ length: 60 }, (_, n) => engine.start(flow, `${n}`)))
    await Promise.all(runs.map((run) => run.result()))
    expect(await items()).toHaveLength(60)
  })
})

describe('a commit whose answer is lost', () => {
  async function lossy(isolationLevel: 'read committed' | 'serializable', disturb: (to: Opened) => Promise<void>) {
    const opened = await open()
    const relay = await Relay.open(opened.url)
    const tally = new Tally()
    const flow = workflow('flow', (ctx) =>
      ctx.transaction('put', { isolationLevel }, async (tx) => {
        await tx.run(`insert into ${opened.ledger} values ($1, 1)`, [`call ${tally.add('called')}`])
        await disturb(opened)
        if (tally.of('called') === 1) relay.cutAfterNext('COMMIT')
        return tally.of('called')
      }),
    )
    const store = postgres(relay.url, { schema: opened.schema, notify: false })
    const engine = ended(new Engine({ store, definitions: [flow], logger: notebook() }))
    await engine.launch()
    const value = await (await engine.start(flow)).result()
    return { value, calls: tally.of('called'), rows: await opened.query('select item from ledger') }
  }

  it('is looked for, and the body not called again', async () => {
    const found = await lossy('read committed', async () => {})
    expect(found).toEqual({ value: 1, calls: 1, rows: [{ item: 'call 1' }] })
  })

  it('alike if another connection had the fence', async () => {
    const found = await lossy('serializable', async ({ url, schema }) => {
      const other = await stranger(url)
      await other.query(`update "${schema}".runs set lease_until = lease_until + 1`)
    })
    expect(found.rows).toHaveLength(1)
    expect(found.value).toBe(found.calls)
  })
})

describe('the session', () => {
  it('W26: may be changed by the body: the store’s statements and later transactions don’t notice', async () => {
    const { start, items, schema, query, engine } = await stage(async (ctx) => {
      await ctx.transaction('set', async (tx) => {
        await insert(tx, 'a')
        await tx.run(`create schema "${schema}-bad"`)
        await tx.run(`create table "${schema}-bad".runs (id text)`)
        await tx.run(`create table "${schema}-bad".checkpoints (id text)`)
        await tx.run(`set search_path = "${schema}-bad"`)
      })
      return ctx.transaction('look', async (tx) => (await tx.query('show search_path'))[0])
    })
    onTestFinished(async () => void (await sql(`drop schema "${schema}-bad" cascade`)))
    const run = await start()
    expect(await run.result()).toEqual({ search_path: `"${schema}-app"` })
    expect(await items()).toEqual(['a'])
    expect(await engine.runs.steps(run.id)).toHaveLength(2)
    expect(await query(`select id from "${schema}-bad".checkpoints`)).toEqual([])
  })

  it('is that of the client that tx.native gives', async () => {
    const { start, items } = await stage(async (ctx) => {
      const failed = ctx.transaction('failing', async (tx) => {
        await (tx.native as pg.PoolClient).query("insert into ledger values ('a', 1)")
        throw new Error('no')
      })
      await refusal(failed)
      await ctx.transaction('native', async (tx) => {
        await (tx.native as pg.PoolClient).query("insert into ledger values ('b', 1)")
      })
      return refusal(
        ctx.transaction('ending', async (tx) => {
          await (tx.native as pg.PoolClient).query('commit')
        }),
      )
    })
    expect(await (await start()).result()).toMatchObject({ code: 'TRANSACTION_CLOSED' })
    expect(await items()).toEqual(['b'])
  })
})

describe('what is recorded', () => {
  it('W26: of a body that makes its transaction read-only is recorded after its commit', async () => {
    const tally = new Tally()
    const { start, engine } = await stage(async (ctx) => {
      const count = await ctx.transaction('count', async (tx) => {
        tally.add('called')
        await tx.run('set transaction read only')
        return (await tx.query('select count(*)::int as n from ledger'))[0]
      })
      await ctx.sleep(1_100)
      return count
    })
    const run = await start()
    expect(await run.result()).toEqual({ n: 0 })
    expect(tally.all).toEqual({ called: 1 })
    expect((await engine.runs.steps(run.id))[0]).toMatchObject({ kind: 'transaction', name: 'count' })
  })

  it('is nothing of a body that swallows an error of the database', async () => {
    const { start, items } = await stage(async (ctx) => {
      const failed = ctx.transaction('put', async (tx) => {
        await insert(tx, 'a')
        await tx.query('select item from nowhere').catch(() => {})
      })
      return refusal(failed)
    })
    expect(await (await start()).result()).toMatchObject({ message: expect.stringContaining('nowhere') })
    expect(await items()).toEqual([])
  })

  it('a constraint that is checked at the commit is the body’s error', async () => {
    const { start, items, query } = await stage((ctx) =>
      refusalOf(
        ctx.transaction('put', async (tx) => {
          await insert(tx, 'a')
          await insert(tx, 'a')
        }),
      ),
    )
    await query('alter table ledger add constraint once unique (item) deferrable initially deferred')
    expect(await (await start()).result()).toMatchObject({ message: expect.stringContaining('once') })
    expect(await items()).toEqual([])
  })
})

const refusalOf = (promise: Promise<unknown>): Promise<unknown> => refusal(promise)
