import { expect, it } from 'vitest'
import { Dice } from './dice.ts'
import { Recorder } from './recorder.ts'
import { anyDelay, type Body, FastClock, HastyScheduler, turns, walk, walkToEnd } from './rehearsal.ts'

const atOnce = async (): Promise<void> => {}

async function record(body: Body, delay: () => Promise<unknown> = atOnce): Promise<Recorder> {
  const recorder = new Recorder([], delay)
  expect(await walkToEnd(recorder, body)).toMatchObject({ type: 'returned' })
  return recorder
}

function block(ms: number): void {
  const end = performance.now() + ms
  let now = performance.now()
  while (now < end) now = performance.now()
}

/** Where each crash would leave the history, in order. */
function prefixes(recorder: Recorder): readonly Recorder[] {
  return recorder.entries.map((_, length) => new Recorder(recorder.entries.slice(0, length + 1), atOnce))
}

it('W8: a call whose promise is dropped spends its position', async () => {
  const keys: string[] = []
  const body: Body = async (ctx) => {
    void ctx.step('dropped', () => 1)
    await ctx.step('kept', (step) => keys.push(step.idempotencyKey))
    return ctx.step('last', (step) => keys.push(step.idempotencyKey))
  }
  await record(body)
  expect(keys).toEqual(['run:1', 'run:2'])
})

it('G-02: a loop over races takes the same winners on every replay', async () => {
  const wait = [30, 5, 15]
  const body: Body = async (ctx) => {
    const left = new Map(wait.map((ms, id) => [id, ctx.step('leg', () => turns(ms)).then(() => id)]))
    const order: number[] = []
    while (left.size > 0) {
      const id = await Promise.race(left.values())
      left.delete(id)
      order.push(await ctx.step(`after ${id}`, () => id))
    }
    return order
  }
  const recorder = await record(body)
  wait.reverse()
  expect(await walkToEnd(recorder, body)).toEqual({ type: 'returned', value: [1, 2, 0] })
})

it('G-03: signal-like and timer outcomes next to each other, replayed 1,000 times, decide the race alike', async () => {
  const dice = new Dice(3)
  let runs = 0
  const body: Body = async (ctx) => {
    const legs = [1, 2, 3].map((leg) => ctx.step('leg', () => void runs++).then(() => leg))
    const all = Promise.all(legs).then(() => 'all')
    return Promise.race([all, ctx.sleep(0).then(() => 'timer')]).then(async (first) => [first, await ctx.now()])
  }
  const recorder = await record(body, anyDelay(dice))
  const expected = await walkToEnd(new Recorder(recorder.entries, atOnce), body)
  expect(runs).toBe(3)
  for (let replay = 0; replay < 1_000; replay += 1) {
    expect(await walkToEnd(new Recorder(recorder.entries, anyDelay(dice)), body)).toEqual(expected)
  }
  expect(runs).toBe(3)
})

it('G-05, G-07: 20 steps that end in one tick, cut at every point, all run once or are replayed', async () => {
  let runs = 0
  const body: Body = async (ctx) => {
    const values = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        ctx.step('part', () => {
          runs += 1
          return index
        }),
      ),
    )
    return [values, await ctx.step('sum', () => values.reduce((sum, value) => sum + value, 0))]
  }
  const recorder = await record(body)
  for (const cut of prefixes(recorder)) {
    const recorded = cut.entries.filter(({ type }) => type === 'outcome').length
    runs = 0
    expect(await walkToEnd(cut, body)).toMatchObject({ value: [expect.anything(), 190] })
    expect(runs).toBe(Math.max(0, 20 - recorded))
  }
})

it('begins a stray call only when its arrival is stored, and gives it that position again', async () => {
  const begun: string[] = []
  const pause = { first: 1, second: 6 }
  const arrived = (): number =>
    recorder.entries.filter(({ type, name }) => type === 'order' && name === 'charge').length
  const chain = async (ctx: Parameters<Body>[0], name: 'first' | 'second'): Promise<string> => {
    await ctx.step(name, () => 0)
    await turns(pause[name])
    return ctx.step('charge', (step) => {
      begun.push(`${name} ${step.idempotencyKey}`)
      expect(arrived()).toBeGreaterThanOrEqual(new Set(begun).size)
      return name
    })
  }
  const body: Body = (ctx) => Promise.all([chain(ctx, 'first'), chain(ctx, 'second')])
  let recorder = new Recorder([], atOnce)
  await walkToEnd(recorder, body)
  expect(begun).toEqual(['first run:2', 'second run:3'])
  const lastArrival = recorder.entries.findLastIndex(({ type, name }) => type === 'order' && name === 'charge')
  recorder = new Recorder(recorder.entries.slice(0, lastArrival + 1), atOnce)
  Object.assign(pause, { first: 9, second: 1 })
  expect(await walkToEnd(recorder, body)).toEqual({ type: 'returned', value: ['first', 'second'] })
  expect(new Set(begun)).toEqual(new Set(['first run:2', 'second run:3']))
})

it('waits on a replay for a call that followed at once when it was recorded and now takes time', async () => {
  let loading = atOnce
  const body: Body = async (ctx) => {
    const chain = async (): Promise<number> => {
      await ctx.step('a', () => 1)
      await loading()
      return ctx.step('same', () => 10)
    }
    const other = async (): Promise<number> => {
      await ctx.step('b', () => turns(3))
      return ctx.step('same', () => 20)
    }
    return Promise.all([chain(), other()])
  }
  const recorder = await record(body)
  loading = async () => new Promise((resolve) => setTimeout(resolve, 20))
  for (const cut of prefixes(recorder))
    expect(await walkToEnd(cut, body)).toEqual({ type: 'returned', value: [10, 20] })
})

it('an outcome that comes while the body runs is recorded after the calls of that turn', async () => {
  let finish = (): void => {}
  const held = new Promise<void>((resolve) => {
    finish = resolve
  })
  const body: Body = async (ctx) => {
    const slow = ctx.step('slow', () => held)
    await ctx.step('quick', () => 0)
    finish()
    for (let hop = 0; hop < 30; hop += 1) await Promise.resolve()
    const late = ctx.step('late', () => turns(2))
    return Promise.all([slow, late])
  }
  const recorder = await record(body)
  expect(recorder.entries.find(({ name }) => name === 'slow')).toMatchObject({ calls: 3 })
})

it('a run recognises its calls by name, after one wait, when its code was moved about', async () => {
  const inline: Body = async (ctx) => {
    for (const name of ['a', 'b', 'c']) await ctx.step(name, () => name)
    return ctx.step('d', () => 'd')
  }
  const moved: Body = async (ctx) => {
    const steps = async (): Promise<void> => {
      await ctx.step('a', () => 'x')
      await ctx.step('b', () => 'x')
    }
    await steps()
    return [await ctx.step('c', () => 'x'), await ctx.step('d', () => 'x')]
  }
  const recorder = await record(inline)
  const start = performance.now()
  expect(await walk(recorder, new FastClock(), moved)).toMatchObject({ end: { type: 'returned', value: ['c', 'd'] } })
  expect(performance.now() - start).toBeLessThan(3_000)
})

it("does not take a chain's second call for the first of the chain beside it", async () => {
  const pause = { left: 1, right: 9 }
  const body: Body = async (ctx) => {
    const left = async (): Promise<string> => {
      await ctx.step('first', () => 0)
      await turns(pause.left)
      await ctx.step('same', () => 0)
      await turns(pause.left)
      return ctx.step('charge', () => 'left')
    }
    const right = async (): Promise<string> => {
      await ctx.step('same', () => 0)
      await turns(pause.right)
      return ctx.step('charge', () => 'right')
    }
    return Promise.all([left(), right()])
  }
  const recorder = await record(body)
  Object.assign(pause, { left: 9, right: 1 })
  for (const cut of prefixes(recorder))
    expect(await walkToEnd(cut, body)).toEqual({ type: 'returned', value: ['left', 'right'] })
})

it('waits for a stray call of the record though the body ended sooner this time', async () => {
  const pause = { chain: 1, end: 60 }
  const body: Body = async (ctx) => {
    const chain = async (): Promise<unknown> => {
      await ctx.step('a', () => 0)
      await turns(pause.chain)
      return ctx.step('b', () => 0)
    }
    void chain()
    await ctx.step('c', () => 0)
    await turns(pause.end)
    return 'done'
  }
  const recorder = await record(body)
  expect(recorder.entries.map(({ name }) => name)).toContain('b')
  Object.assign(pause, { chain: 30, end: 0 })
  expect(await walkToEnd(recorder, body)).toEqual({ type: 'returned', value: 'done' })
})

it('a loop that is blocked uses up no patience for calls that could not come meanwhile', async () => {
  let detour = async (): Promise<void> => turns(3)
  const body: Body = async (ctx) => {
    await ctx.step('a', () => 0)
    await detour()
    return ctx.step('b', () => 'b')
  }
  const recorder = await record(body)
  // Each turn takes longer than all patience: 5 s, which are 50 ms by this scheduler.
  detour = async () => {
    for (let turn = 0; turn < 4; turn += 1) {
      await turns(1)
      block(60)
    }
  }
  const { end } = await walk(recorder, new FastClock(), body, new HastyScheduler())
  expect(end).toEqual({ type: 'returned', value: 'b' })
})

it('sleeps whose ends both passed while nobody had the run end in the order of their instants', async () => {
  const body: Body = async (ctx) =>
    Promise.race([ctx.sleep(10_000).then(() => 'long'), ctx.sleep(5_000).then(() => 'short')])
  const recorder = new Recorder([], atOnce)
  const clock = new FastClock()
  const { end } = await walk(recorder, clock, body)
  if (end.type !== 'suspended' || end.wakeAt === null) throw new Error(`the pass ended ${end.type}`)
  await recorder.store(end.entries)
  clock.jumpTo(end.wakeAt + 60_000)
  expect(await walk(recorder, clock, body)).toMatchObject({ end: { type: 'returned', value: 'short' } })
})

it('a body that ignores the timeout of its step does not keep its run in memory', async () => {
  const body: Body = async (ctx) => {
    await ctx.step('hangs', { timeout: 50 }, () => new Promise(() => {})).catch(() => {})
    await ctx.sleep('1d')
  }
  expect(await walk(new Recorder([], atOnce), new FastClock(), body)).toMatchObject({ end: { type: 'suspended' } })
})

it('a record that this process cannot read ends the pass, and nothing else', async () => {
  const body: Body = async (ctx) => {
    await ctx.step('a', () => 0)
    return ctx.step('b', () => 0)
  }
  const recorder = await record(body)
  const damaged = recorder.entries.map((entry) => (entry.name === 'a' ? { ...entry, value: '{' } : entry))
  const { end } = await walk(new Recorder(damaged, atOnce), new FastClock(), body)
  expect(end).toMatchObject({ type: 'failed', error: { code: 'SERIALIZATION' } })
})

it('a short await that is not durable is waited for, though only a sleep that lost its race is left', async () => {
  let detour = atOnce
  const body: Body = async (ctx) => {
    await Promise.race([ctx.step('work', () => 0), ctx.sleep('1h')])
    await detour()
    return ctx.step('next', () => 'next')
  }
  detour = async () => void (await crypto.subtle.digest('SHA-256', new Uint8Array(8)))
  const { end } = await walk(new Recorder([], atOnce), new FastClock(1), body)
  expect(end).toEqual({ type: 'returned', value: 'next' })
  detour = async () => new Promise(() => {})
  const { end: other } = await walk(new Recorder([], atOnce), new FastClock(1), body)
  expect(other).toMatchObject({ type: 'suspended' })
})
