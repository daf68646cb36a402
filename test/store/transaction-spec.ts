/** `ctx.transaction` on a store with SQL: what holds whatever the database. */
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import {
  Engine,
  NestedDurableCallError,
  RunCancelledError,
  SerializationError,
  type SqlTransaction,
  StepTimeoutError,
  TransactionClosedError,
  type WorkflowContext,
  workflow,
} from '../../src/index.ts'
import type { Store } from '../../src/store/contract.ts'
import { door, ended, notebook, refusal, Tally, until } from '../api/engine/support.ts'

export interface SqlStore {
  readonly store: Store
  /** Another object on the same database. */
  again(): Store
  /** A statement outside of any transaction: rows by name. */
  query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** An empty database with a table `ledger (item text, n integer)`. */
export type Open = () => Promise<SqlStore>

class Declined extends Error {
  override readonly name = 'Declined'
  readonly reason: string
  constructor(reason: string) {
    super(`declined: ${reason}`, { cause: new Error('the bank') })
    this.reason = reason
  }
}

type Body = (ctx: WorkflowContext<unknown>, input: string) => Promise<unknown>

/** `mark`: how the database writes its n-th placeholder. */
export function describeTransactions(open: Open, mark: (n: number) => string): void {
  const insert = (tx: SqlTransaction, item: string, n = 1) =>
    tx.run(`insert into ledger (item, n) values (${mark(1)}, ${mark(2)})`, [item, n])

  async function stage(body: Body) {
    const database = await open()
    const flow = workflow('flow', body)
    const logger = notebook()
    const engine = ended(new Engine({ store: database.store, definitions: [flow], logger, errors: [Declined] }))
    await engine.launch()
    const items = async () => (await database.query('select item from ledger order by item')).map(({ item }) => item)
    return { ...database, engine, flow, logger, items, start: (input = 'in') => engine.start(flow, input) }
  }

  /** So long that the run is suspended, and its body walked again. */
  const replay = (ctx: WorkflowContext<unknown>) => ctx.sleep(1_100)

  describe('W23: what is committed', () => {
    it('is what the body wrote, with its value, once: a replay finds both', async () => {
      const tally = new Tally()
      const { start, items, engine } = await stage(async (ctx) => {
        const value = await ctx.transaction('put', async (tx) => {
          tally.add('put')
          expect(await insert(tx, 'a')).toEqual({ changes: 1 })
          expect(await insert(tx, 'b', 2)).toEqual({ changes: 1 })
          const rows = await tx.query<{ n: number }>(`select item, n from ledger where n > ${mark(1)}`, [1])
          return { rows, key: tx.idempotencyKey, attempt: tx.attempt, at: new Date(5) }
        })
        await replay(ctx)
        return value
      })
      const run = await start()
      const key = `${run.id}:0`
      expect(await run.result()).toEqual({ rows: [{ item: 'b', n: 2 }], key, attempt: 1, at: new Date(5) })
      expect(await items()).toEqual(['a', 'b'])
      expect(tally.all).toEqual({ put: 1 })
      expect((await engine.runs.steps(run.id))[0]).toMatchObject({ kind: 'transaction', name: 'put', position: 0 })
    })

    it('is nothing of a body that throws; its error is recorded, with class, cause and fields', async () => {
      const tally = new Tally()
      const { start, items } = await stage(async (ctx) => {
        const failed = ctx.transaction('put', async (tx) => {
          tally.add('put')
          await insert(tx, 'a')
          throw new Declined('funds')
        })
        const error = await refusal(failed)
        await replay(ctx)
        expect(error).toBeInstanceOf(Declined)
        expect(error).toMatchObject({ reason: 'funds', cause: { message: 'the bank' } })
        return 'caught'
      })
      expect(await (await start()).result()).toBe('caught')
      expect(await items()).toEqual([])
      expect(tally.all).toEqual({ put: 1 })
    })

    it('is nothing of a body whose value can’t be stored, which is not tried again', async () => {
      const tally = new Tally()
      const { start, items } = await stage(async (ctx) => {
        const failed = ctx.transaction('put', { maxAttempts: 3 }, async (tx) => {
          tally.add('put')
          await insert(tx, 'a')
          return () => {}
        })
        expect(await refusal(failed)).toBeInstanceOf(SerializationError)
      })
      await (await start()).result()
      expect(await items()).toEqual([])
      expect(tally.all).toEqual({ put: 1 })
    })

    it('of an error of the database is nothing, unless the body goes on', async () => {
      const { start, items } = await stage(async (ctx) => {
        const failed = ctx.transaction('put', async (tx) => {
          await insert(tx, 'a')
          await tx.query('select item from nowhere')
        })
        expect(await refusal(failed)).toMatchObject({ message: expect.stringContaining('nowhere') })
      })
      await (await start()).result()
      expect(await items()).toEqual([])
    })

    it('has statements that the body has not awaited in it', async () => {
      const { start, items } = await stage((ctx) =>
        ctx.transaction('put', (tx) => {
          void insert(tx, 'a')
          void insert(tx, 'b')
        }),
      )
      await (await start()).result()
      expect(await items()).toEqual(['a', 'b'])
    })

    it('may be nothing at all: a body without SQL is recorded all the same', async () => {
      const { start, engine } = await stage((ctx) => ctx.transaction('none', () => 7))
      const run = await start()
      expect(await run.result()).toBe(7)
      expect(await engine.runs.steps(run.id)).toHaveLength(1)
    })
  })

  describe('W23, W24: attempts', () => {
    it('are as many as are allowed, each in a transaction of its own', async () => {
      const { start, items, engine } = await stage((ctx) =>
        ctx.transaction('put', { maxAttempts: 3, backoff: { base: 1 } }, async (tx) => {
          await insert(tx, `attempt ${tx.attempt}`)
          if (tx.attempt < 3) throw new Error('not yet')
          return tx.attempt
        }),
      )
      const run = await start()
      expect(await run.result()).toBe(3)
      expect(await items()).toEqual(['attempt 3'])
      expect((await engine.runs.steps(run.id))[0]).toMatchObject({ attempts: 3 })
    })

    it('end where retryIf says so', async () => {
      const tally = new Tally()
      const { start } = await stage(async (ctx) => {
        const options = { maxAttempts: 5, backoff: { base: 1 }, retryIf: () => tally.of('put') < 2 }
        const failed = ctx.transaction('put', options, () => {
          tally.add('put')
          throw new Declined('funds')
        })
        expect(await refusal(failed)).toBeInstanceOf(Declined)
      })
      await (await start()).result()
      expect(tally.all).toEqual({ put: 2 })
    })

    it('that take too long are rolled back at once, whether or not the body heeds its signal', async () => {
      const late = door()
      const { start, items, query } = await stage(async (ctx) => {
        const failed = ctx.transaction('put', { timeout: 60 }, async (tx) => {
          await insert(tx, 'a')
          await late.opened
          await insert(tx, 'b')
        })
        expect(await refusal(failed)).toBeInstanceOf(StepTimeoutError)
        await ctx.transaction('next', (tx) => insert(tx, 'c'))
        return 'caught'
      })
      expect(await (await start()).result()).toBe('caught')
      late.open()
      await setTimeout(20)
      expect(await items()).toEqual(['c'])
      expect(await query('select n from ledger')).toEqual([{ n: 1 }])
    })
  })

  describe('a run', () => {
    it('W24: makes no durable call within a transaction', async () => {
      const { start, items } = await stage(async (ctx) => {
        const failed = ctx.transaction('outer', async (tx) => {
          await insert(tx, 'a')
          await ctx.transaction('inner', () => 1)
        })
        expect(await refusal(failed)).toMatchObject({ code: 'NESTED_DURABLE_CALL', step: 'outer' })
      })
      await (await start()).result()
      expect(await items()).toEqual([])
    })

    it('W24: has one transaction open: a second is refused, and replayed so', async () => {
      const tally = new Tally()
      const { start, items } = await stage(async (ctx) => {
        const both = await Promise.allSettled(
          ['a', 'b'].map((item) =>
            ctx.transaction(item, async (tx) => {
              tally.add(item)
              await insert(tx, item)
              return item
            }),
          ),
        )
        await replay(ctx)
        const third = await ctx.transaction('c', async (tx) => (await insert(tx, 'c')).changes)
        return [both[0], both[1]?.status === 'rejected' && both[1].reason, third]
      })
      const [first, second, third] = (await (await start()).result()) as unknown[]
      expect(first).toEqual({ status: 'fulfilled', value: 'a' })
      expect(NestedDurableCallError.is(second)).toBe(true)
      expect(second).toMatchObject({ overlapping: true, step: 'a', call: "transaction 'b'" })
      expect(third).toBe(1)
      expect(await items()).toEqual(['a', 'c'])
      expect(tally.all).toEqual({ a: 1 })
    })

    it('goes on beside its transaction: steps end after it, in one order', async () => {
      const { start } = await stage(async (ctx) => {
        const order: string[] = []
        const note = (what: string) => () => void order.push(what)
        const slow = ctx.transaction('slow', async (tx) => {
          await insert(tx, 'a')
          await setTimeout(30)
        })
        await Promise.all([
          slow.then(note('slow')),
          ctx
            .step('quick', () => 1)
            .then(() => ctx.step('after', () => 2))
            .then(note('steps')),
        ])
        await replay(ctx)
        return order
      })
      const run = await start()
      expect([...((await run.result()) as string[])].sort()).toEqual(['slow', 'steps'])
      expect(await run.status()).toBe('SUCCESS')
    })

    it('that is cancelled while a transaction is open is asked at once', async () => {
      const begun = door()
      const { start, items } = await stage((ctx) =>
        ctx.transaction('put', async (tx) => {
          begun.open()
          await new Promise((_, reject) => tx.signal.addEventListener('abort', () => reject(tx.signal.reason)))
        }),
      )
      const run = await start()
      await begun.opened
      expect(await run.cancel()).toBe(true)
      expect(await refusal(run.result())).toBeInstanceOf(RunCancelledError)
      expect(await items()).toEqual([])
    })

    it('W25: that loses its claim has written nothing; whoever has it next does', async () => {
      const tally = new Tally()
      const { start, items, again } = await stage((ctx) =>
        ctx.transaction('put', async (tx) => {
          if (tally.add('put') === 1) {
            const other = again()
            await other.open()
            const [run] = await other.runs([ctx.runId])
            await other.reclaim({ deadOwners: [run?.owner ?? ''], limit: 1 })
            await other.close()
          }
          await insert(tx, `delivery ${tally.of('put')}`)
        }),
      )
      await (await start()).result()
      expect(await items()).toEqual(['delivery 2'])
    })

    it('is handed back by a shutdown with an open transaction, and the next engine makes it', async () => {
      const begun = door()
      const tally = new Tally()
      const { start, items, engine, flow, again } = await stage((ctx) =>
        ctx.transaction('put', async (tx) => {
          await insert(tx, `call ${tally.add('put')}`)
          if (tally.of('put') > 1) return
          begun.open()
          await new Promise(() => {})
        }),
      )
      const run = await start()
      await begun.opened
      await engine.shutdown({ timeout: 0 })
      const next = ended(new Engine({ store: again(), definitions: [flow], logger: notebook() }))
      await next.launch()
      await next.handle(flow, run.id).result()
      expect(await items()).toEqual(['call 2'])
    })
  })

  describe('tx', () => {
    it('is of no use once the body has returned', async () => {
      const kept: SqlTransaction[] = []
      const { start, items } = await stage((ctx) =>
        ctx.transaction('put', async (tx) => {
          await insert(tx, 'a')
          kept.push(tx)
        }),
      )
      await (await start()).result()
      const [tx] = kept
      if (tx === undefined) throw new Error('no transaction')
      expect(await refusal(insert(tx, 'b'))).toBeInstanceOf(TransactionClosedError)
      expect(() => tx.native).toThrow(TransactionClosedError)
      expect(await items()).toEqual(['a'])
    })

    it('takes no statement that would end the transaction, and knows savepoints', async () => {
      const { start, items } = await stage(async (ctx) => {
        for (const sql of ['commit', ' -- now\n COMMIT', 'rollback', 'begin', 'end']) {
          const failed = ctx.transaction('end', async (tx) => {
            await insert(tx, 'a')
            await tx.run(sql)
          })
          expect(await refusal(failed), sql).toMatchObject({ code: 'CONFIGURATION' })
        }
        await ctx.transaction('savepoint', async (tx) => {
          await tx.run('savepoint one')
          await insert(tx, 'b')
          await tx.run('rollback to savepoint one')
          await insert(tx, 'c')
        })
      })
      await (await start()).result()
      expect(await items()).toEqual(['c'])
    })
  })

  it('other runs go on while a transaction is open, and its own earlier records are there', async () => {
    const begun = door()
    const go = door()
    let others = 0
    const { start, engine, flow, items } = await stage(async (ctx, input) => {
      if (input === 'other') return ctx.step('work', () => (others += 1))
      await ctx.step('before', () => 1)
      return ctx.transaction('put', async (tx) => {
        begun.open()
        await go.opened
        await insert(tx, 'a')
      })
    })
    const run = await start()
    await begun.opened
    expect(await engine.runs.steps(run.id)).toHaveLength(1)
    await Promise.all(Array.from({ length: 20 }, async () => (await engine.start(flow, 'other')).result()))
    expect(others).toBe(20)
    go.open()
    await run.result()
    await until(async () => (await items()).length === 1)
  })
}
