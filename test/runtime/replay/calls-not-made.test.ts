import { expect, it } from 'vitest'
import { Recorder } from './recorder.ts'
import { type Body, FastClock, walk } from './rehearsal.ts'

const clock = new FastClock()

it('a run whose calls are all recorded ends without a warning of calls that were not made', async () => {
  const recorder = new Recorder([], async () => {})
  const body: Body = async (ctx) => [await ctx.step('a', () => 1), await ctx.step('b', () => 2)]
  await walk(recorder, clock, body)
  // As after a crash between the last record and the settlement.
  const { end, events } = await walk(recorder, clock, body)
  expect(end).toEqual({ type: 'returned', value: [1, 2] })
  expect(events).toEqual([])
})

it('a call that the body makes last and does not await is told of', async () => {
  const { events } = await walk(new Recorder([], async () => {}), clock, async (ctx) => void ctx.step('a', () => 1))
  expect(events).toEqual([{ type: 'calls.notMade', runId: 'run', calls: ["step 'a'"] }])
})
