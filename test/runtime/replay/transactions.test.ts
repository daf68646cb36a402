/** What transactions do to the order of a record, whatever becomes of them and wherever a crash cuts it. */
import { describe, expect, it } from 'vitest'
import type { WorkflowContext } from '../../../src/api/context.ts'
import { NestedDurableCallError } from '../../../src/index.ts'
import type { Transaction, Transactions } from '../../../src/runtime/replay/port.ts'
import type { SqlAccess, TransactOutcome } from '../../../src/store/contract.ts'
import { Dice } from './dice.ts'
import { Facts } from './facts.ts'
import { Recorder } from './recorder.ts'
import { anyDelay, BriskScheduler, FastClock, newPass, turns, walkBody, walkToEnd } from './rehearsal.ts'

const NO_SQL: SqlAccess = { query: async () => [], run: async () => ({ changes: 0 }), native: undefined }

/** A store with SQL: some transactions are interfered with, all take their time. */
class SqlRecorder extends Recorder {
  readonly transactions: Transactions
  open = 0

  constructor(before: Facts, dice: Dice) {
    const delay = anyDelay(dice)
    super(before, delay)
    this.transactions = { isolationLevels: [], transact: (transaction) => this.#transact(transaction, dice, delay) }
  }

  async #transact(
    { entry, body, signal }: Transaction,
    dice: Dice,
    delay: () => Promise<unknown>,
  ): Promise<TransactOutcome> {
    expect(++this.open, 'one transaction of a run').toBe(1)
    try {
      const value = await body(NO_SQL)
      await delay()
      // What was recorded before is stored by now.
      await this.store([])
      if (signal.aborted) throw signal.reason
      if (dice.below(4) === 0) return rolledBack(new Error('deadlock'), true)
      this.change((facts) => facts.record([{ ...entry, value }]))
      return { type: 'performed', value, cancelRequested: false }
    } catch (error) {
      return rolledBack(error, false)
    } finally {
      this.open -= 1
    }
  }
}

function rolledBack(error: unknown, interfered: boolean): TransactOutcome {
  return { type: 'rolledBack', error, interfered, settled: Promise.resolve() }
}

/** Chains of steps, sleeps and transactions side by side; what each call came to. */
function program(seed: number): (ctx: WorkflowContext<unknown>) => Promise<unknown> {
  return async (ctx) => {
    const chain = async (name: string, dice: Dice): Promise<readonly unknown[]> => {
      const came: unknown[] = []
      for (let n = 0; n < 4; n += 1) {
        const kind = dice.below(5)
        const fails = dice.below(4) === 0
        const work = async (): Promise<string> => {
          await turns(2)
          if (fails) throw new Error(`${name} ${n} failed`)
          return `${name} ${n}`
        }
        if (kind === 0) await ctx.sleep(dice.pick(1, 20, 5_000))
        else {
          const call = kind < 3 ? ctx.transaction(name, work) : ctx.step(name, work)
          came.push(await call.catch((error: unknown) => (error instanceof Error ? error.message : 'no error')))
        }
      }
      return came
    }
    return Promise.all(['a', 'b', 'c'].map((name, n) => chain(name, new Dice(seed * 10 + n))))
  }
}

describe('programs with transactions', () => {
  const seeds = [...Array.from({ length: 12 }, (_, n) => n + 1), Math.floor(Math.random() * 2 ** 30)]

  it.each(seeds)('seed %i: end the same from every third crash point', async (seed) => {
    const scheduler = new BriskScheduler()
    const body = program(seed)
    const first = new SqlRecorder(new Facts(), new Dice(seed))
    const end = await walkToEnd(first, body, { scheduler })
    expect(end.type).toBe('returned')
    // Walked again over the whole record, it comes to the very same.
    expect(await walkToEnd(new SqlRecorder(first.facts, new Dice(seed)), body, { scheduler })).toEqual(end)
    for (const [at, moment] of first.moments.entries()) {
      if (at % 3 > 0) continue
      const again = new SqlRecorder(moment, new Dice(seed + at))
      expect((await walkToEnd(again, body, { scheduler })).type, `from moment ${at}`).toBe('returned')
      const positions = again.entries.flatMap(({ type, position }) => (type === 'outcome' ? [position] : []))
      expect(new Set(positions).size, 'one outcome of each call').toBe(positions.length)
      expect(again.entries.slice(0, moment.entries.length)).toEqual(moment.entries)
    }
  })
})

it('a pass that is over leaves no transaction open, and records none', async () => {
  const recorder = new SqlRecorder(new Facts(), new Dice(1))
  const pass = newPass({ port: recorder, entries: [], clock: new FastClock() })
  const walked = walkBody(pass, (ctx) =>
    ctx.transaction(
      't',
      (tx) => new Promise((_, reject) => tx.signal.addEventListener('abort', () => reject(new Error('told')))),
    ),
  )
  await turns(20)
  expect(recorder.open).toBe(1)
  pass.abort(new Error('over'), { patient: true })
  expect(await walked).toMatchObject({ type: 'aborted' })
  expect(recorder.open).toBe(0)
  expect(recorder.entries).toEqual([])
})

it('a second transaction is refused while the first is open, after it in the record', async () => {
  const recorder = new SqlRecorder(new Facts(), new Dice(3))
  const pass = newPass({ port: recorder, entries: [], clock: new FastClock() })
  const end = await walkBody(pass, (ctx) =>
    Promise.allSettled(['a', 'b'].map((name) => ctx.transaction(name, () => name))),
  )
  const value = end.type === 'returned' ? end.value : undefined
  expect(value).toMatchObject([{ value: 'a' }, { reason: { code: 'NESTED_DURABLE_CALL', overlapping: true } }])
  expect(NestedDurableCallError.is((value as PromiseRejectedResult[])[1]?.reason)).toBe(true)
  expect(recorder.entries.map(({ verb, name, failed }) => [verb, name, failed])).toEqual([
    ['transaction', 'a', false],
    ['transaction', 'b', true],
  ])
})
