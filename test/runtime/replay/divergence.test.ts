import { expect, it } from 'vitest'
import { NonDeterminismError } from '../../../src/index.ts'
import type { PassEnd } from '../../../src/runtime/replay/pass.ts'
import { Recorder } from './recorder.ts'
import { type Body, FastClock, HastyScheduler, turns, walk, walkToEnd } from './rehearsal.ts'

const effects: string[] = []
let scheduler = new HastyScheduler()
const act = (name: string) => (): string => {
  effects.push(name)
  return name
}

/** Records `first`, replays with `second`. */
async function replay(first: Body, second: Body, keep?: number): Promise<PassEnd> {
  const recorder = new Recorder([], async () => {})
  await walkToEnd(recorder, first)
  effects.length = 0
  const kept = new Recorder(recorder.entries.slice(0, keep), async () => {})
  const before = JSON.stringify(kept.entries)
  scheduler = new HastyScheduler()
  const { end } = await walk(kept, new FastClock(), second, scheduler)
  if (end.type === 'diverged') expect(JSON.stringify(kept.entries)).toBe(before)
  return end
}

const abc: Body = async (ctx) => {
  await ctx.step('a', act('a'))
  await ctx.step('b', act('b'))
  return ctx.step('c', act('c'))
}

function divergence(end: PassEnd): NonDeterminismError {
  if (end.type !== 'diverged') throw new Error(`the pass ended ${end.type}`)
  return end.error
}

it('W6: another call at a recorded position diverges at once, naming both, the position and the call site', async () => {
  const end = await replay(abc, async (ctx) => {
    await ctx.step('a', act('a'))
    await ctx.step('other', act('other'))
  })
  expect(scheduler.delays).toEqual([])
  expect(divergence(end)).toBeInstanceOf(NonDeterminismError)
  expect(divergence(end)).toMatchObject({ position: 1, recorded: "step 'b'", called: "step 'other'" })
  expect(divergence(end).message).toContain('divergence.test.ts:')
  expect(effects).toEqual([])
})

it('W6: another verb of the same position diverges', async () => {
  const end = await replay(abc, async (ctx) => ctx.now())
  expect(divergence(end)).toMatchObject({ position: 0, recorded: "step 'a'", called: 'now' })
})

it('a body that returns before it has called what is recorded diverges at once', async () => {
  const end = await replay(abc, async (ctx) => ctx.step('a', act('a')))
  expect(divergence(end)).toMatchObject({ position: 1, recorded: "step 'b'", called: 'nothing' })
})

it('so does one that throws', async () => {
  const end = await replay(abc, async () => {
    throw new Error('early')
  })
  expect(divergence(end)).toMatchObject({ position: 0, called: 'nothing' })
})

it('a record that nobody calls diverges after 5 s', async () => {
  const end = await replay(abc, async (ctx) => {
    await ctx.step('a', act('a'))
    await new Promise(() => {})
  })
  expect(scheduler.delays.reduce((sum, delay) => sum + delay, 0)).toBe(5_000)
  expect(divergence(end)).toMatchObject({ position: 1, recorded: "step 'b'", called: 'nothing' })
})

it('new calls of a divergent replay have no effects, however many come before it is found out', async () => {
  const parallel: Body = async (ctx) => {
    await Promise.all([ctx.step('a', act('a')), ctx.step('b', act('b'))])
    await ctx.step('c', act('c'))
  }
  const end = await replay(parallel, async (ctx) => {
    await Promise.all([ctx.step('a', act('a')), ctx.step('b', act('b')), ctx.step('new', act('new')), ctx.now()])
    await ctx.step('c', act('c'))
  })
  expect(end.type).toBe('diverged')
  expect(effects).toEqual([])
})

it('a call after an await that is not durable is waited for, and refused if it is another', async () => {
  const slow: Body = async (ctx) => {
    await turns(2)
    return ctx.step('late', act('late'))
  }
  const end = await replay(slow, async (ctx) => {
    await turns(2)
    return ctx.step('later', act('later'))
  })
  expect(divergence(end)).toMatchObject({ recorded: "step 'late'", called: "step 'later'" })
  expect(effects).toEqual([])
})

it('what was not recorded may change', async () => {
  const end = await replay(
    abc,
    async (ctx) => {
      await ctx.step('a', act('a'))
      return ctx.step('changed', act('changed'))
    },
    1,
  )
  expect(end).toMatchObject({ type: 'returned', value: 'changed' })
  expect(effects).toEqual(['changed'])
})
