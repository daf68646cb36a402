/** `ctx.transaction` on SQLite: the write lock that it holds, and for how long. */
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ConfigurationError, Engine, type SqlTransaction, type WorkflowContext, workflow } from '../../../src/index.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { door, ended, notebook, refusal, Tally } from '../../api/engine/support.ts'
import { describeTransactions, type SqlStore } from '../transaction-spec.ts'
import { connect, freshPath } from './files.ts'

async function open(): Promise<SqlStore & { readonly path: string }> {
  const path = freshPath()
  const connection = await connect(path)
  onTestFinished(() => connection.close())
  connection.exec('pragma journal_mode = wal; create table ledger (item text, n integer)')
  const query: SqlStore['query'] = async (sql) => {
    const [names] = [sql.match(/select (.*) from/)?.[1]?.split(', ') ?? []]
    return connection
      .prepare(sql)
      .all()
      .map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]])))
  }
  return { path, store: sqlite(path), again: () => sqlite(path), query }
}

describeTransactions(open, () => '?')

type Body = (ctx: WorkflowContext<unknown>, input: string) => Promise<unknown>

async function stage(body: Body) {
  const database = await open()
  const flow = workflow('flow', body)
  const logger = notebook()
  const engine = ended(new Engine({ store: database.store, definitions: [flow], logger }))
  await engine.launch()
  return { ...database, logger, engine, flow, start: (input = 'in') => engine.start(flow, input) }
}

const insert = (tx: SqlTransaction, item: string) => tx.run('insert into ledger values (?, 1)', [item])

describe('the write lock', () => {
  it('is taken by the first statement: a body without any holds none', async () => {
    const begun = door()
    const go = door()
    const { path, start } = await stage((ctx) =>
      ctx.transaction('idle', async () => {
        begun.open()
        await go.opened
      }),
    )
    const run = await start()
    await begun.opened
    const other = await connect(path)
    other.exec("begin immediate; insert into ledger values ('other', 1); commit")
    other.close()
    go.open()
    await run.result()
  })

  it('is waited for while the event loop turns, and commits of this process wait without trouble', async () => {
    const begun = door()
    const { start, logger, engine, flow, query } = await stage(async (ctx, input) => {
      if (input === 'other') return ctx.step('work', () => 1)
      return ctx.transaction('slow', async (tx) => {
        await insert(tx, input)
        begun.open()
        await setTimeout(1_500)
      })
    })
    const run = await start()
    await begun.opened
    let turns = 0
    const ticking = setInterval(() => (turns += 1), 10)
    const other = await engine.start(flow, 'other')
    await Promise.all([run.result(), other.result()])
    clearInterval(ticking)
    expect(turns).toBeGreaterThan(50)
    expect(logger.messages('warn')).toEqual([])
    expect(await query('select item from ledger')).toEqual([{ item: 'in' }])
  })

  it('is had by one transaction after the other, with commits in between', async () => {
    const { engine, flow, query } = await stage(async (ctx, input) => {
      for (let round = 0; round < 5; round += 1) {
        await ctx.transaction('add', async (tx) => {
          const [row] = await tx.query<{ n: number }>('select count(*) as n from ledger')
          await setTimeout(1)
          await tx.run('insert into ledger values (?, ?)', [`${input}`, row?.n])
        })
      }
    })
    const runs = await Promise.all(Array.from({ length: 10 }, (_, n) => engine.start(flow, `run ${n}`)))
    await Promise.all(runs.map((run) => run.result()))
    const rows = await query('select n from ledger order by n')
    expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  it('is held for at most 5 s', { timeout: 20_000 }, async () => {
    const { start, query } = await stage(async (ctx) => {
      const error = await refusal(
        ctx.transaction('long', async (tx) => {
          await insert(tx, 'a')
          await setTimeout(6_000)
          await insert(tx, 'b')
        }),
      )
      await ctx.transaction('next', (tx) => insert(tx, 'c'))
      return error
    })
    const begun = performance.now()
    expect(await (await start()).result()).toMatchObject({ code: 'TRANSACTION_TOO_LONG', boundMs: 5_000 })
    expect(performance.now() - begun).toBeLessThan(5_900)
    expect(await query('select item from ledger')).toEqual([{ item: 'c' }])
  })
})

describe('tx.native', () => {
  it('is the driver’s database, within the transaction', async () => {
    const { start, query } = await stage(async (ctx) => {
      const failed = ctx.transaction('failing', (tx) => {
        const native = tx.native as import('better-sqlite3').Database
        native.prepare("insert into ledger values ('a', 1)").run()
        throw new Error('no')
      })
      await refusal(failed)
      await ctx.transaction('native', (tx) => {
        const native = tx.native as import('better-sqlite3').Database
        native.prepare("insert into ledger values ('b', 1)").run()
      })
    })
    await (await start()).result()
    expect(await query('select item from ledger')).toEqual([{ item: 'b' }])
  })

  it('is had by calling the body again if the lock is not free', async () => {
    const tally = new Tally()
    const { path, start, query } = await stage((ctx) =>
      ctx.transaction('native', { maxAttempts: 1 }, async (tx) => {
        tally.add('called')
        const native = tx.native as import('better-sqlite3').Database
        native.prepare("insert into ledger values ('b', 1)").run()
      }),
    )
    const other = await connect(path)
    const run = await start()
    other.exec('begin immediate')
    await setTimeout(100)
    other.exec('rollback')
    other.close()
    await run.result()
    expect(await query('select item from ledger')).toEqual([{ item: 'b' }])
    expect(tally.of('called')).toBeLessThanOrEqual(2)
  })

  it('that ended the transaction by itself is told, and nothing recorded', async () => {
    const { start } = await stage((ctx) =>
      ctx.transaction('native', (tx) => {
        const native = tx.native as import('better-sqlite3').Database
        native.exec('commit')
      }),
    )
    expect(await refusal((await start()).result())).toMatchObject({ cause: { code: 'TRANSACTION_CLOSED' } })
  })
})

it('its time-out is by the store’s clock, which goes on beside an open transaction', async () => {
  const clock = new MockClock()
  const path = freshPath()
  const begun = door()
  const flow = workflow('flow', async (ctx) => {
    const body = (tx: SqlTransaction) =>
      new Promise((_, reject) => {
        begun.open()
        tx.signal.addEventListener('abort', () => reject(new Error('told')))
      })
    return refusal(ctx.transaction('t', { timeout: '10s' }, body))
  })
  const engine = ended(new Engine({ store: sqlite(path, { clock }), definitions: [flow] }))
  await engine.launch()
  const run = await engine.start(flow)
  await begun.opened
  await clock.advance('11s')
  expect(await run.result()).toMatchObject({ code: 'STEP_TIMEOUT', timeoutMs: 10_000 })
})

it('has no levels of isolation', async () => {
  const { start } = await stage((ctx) => ctx.transaction('t', { isolationLevel: 'serializable' }, () => 1))
  expect(await refusal((await start()).result())).toMatchObject({ cause: { code: 'CONFIGURATION' } })
})

it('is refused on a store without SQL', async () => {
  const flow = workflow('flow', async (ctx) => {
    expect(() => ctx.transaction('t', () => 1)).toThrow(ConfigurationError)
    return 'refused'
  })
  const engine = ended(new Engine({ store: memory(), definitions: [flow] }))
  await engine.launch()
  expect(await (await engine.start(flow)).result()).toBe('refused')
})
