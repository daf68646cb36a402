import { expect, it } from 'vitest'
import { SerializationError, SignalKeyTakenError } from '../../../src/index.ts'
import type { PassEnd } from '../../../src/runtime/replay/pass.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import type { Facts } from './facts.ts'
import { Recorder } from './recorder.ts'
import { type Body, FastClock, HastyScheduler, newPass, turns, walk, walkBody, walkToEnd } from './rehearsal.ts'
import { codec } from './values.ts'

const atOnce = async (): Promise<void> => {}

const asks: Body = (ctx) => ctx.waitForSignal('key', { timeout: '1h' })

/** Suspended at once, on a clock that stands still. */
async function suspended(
  recorder: Recorder,
  body: Body,
  clock = new MockClock(0),
): Promise<PassEnd & { type: 'suspended' }> {
  const { end } = await walk(recorder, clock, body)
  if (end.type !== 'suspended') throw new Error(`the pass ended ${end.type}`)
  await recorder.store(end.entries)
  return end
}

const HOUR = 3_600_000

async function stateOf(changes: (facts: Facts) => void): Promise<Recorder> {
  const recorder = new Recorder([], atOnce)
  await suspended(recorder, asks)
  recorder.change(changes)
  return new Recorder(recorder.facts, atOnce)
}

const states: Record<string, { readonly left: (facts: Facts) => void; readonly now: number; readonly value: unknown }> =
  {
    'the open wait, before its time-out': {
      left: (facts) => facts.buffer.set('key', '"for another"'),
      now: HOUR - 500,
      value: { ok: false },
    },
    'the open wait, long after its time-out': { left: () => {}, now: 9 * HOUR, value: { ok: false } },
    'the wait that a signal has resolved': {
      left: (facts) => facts.signal('key', '"in time"'),
      now: 9 * HOUR,
      value: { ok: true, payload: 'in time' },
    },
    'the wait whose time was over, and a signal since': {
      left: (facts) => {
        facts.expire(0)
        facts.signal('key', '"late"')
      },
      now: 9 * HOUR,
      value: { ok: false },
    },
    'the instant alone': { left: (facts) => facts.waits.clear(), now: HOUR - 500, value: { ok: false } },
    'the instant alone, and a signal': {
      left: (facts) => {
        facts.waits.clear()
        facts.signal('key', '"buffered"')
      },
      now: 9 * HOUR,
      value: { ok: true, payload: 'buffered' },
    },
  }

it.each(Object.entries(states))('W33: goes on from %s', async (_, { left, now, value }) => {
  const recorder = await stateOf(left)
  const clock = new MockClock(now)
  const pass = newPass({ port: recorder, entries: recorder.entries, clock })
  const walked = walkBody(pass, asks)
  await turns(20)
  await clock.advance(500)
  expect(await walked).toEqual({ type: 'returned', value })
  expect(recorder.entries.map(({ type }) => type)).toEqual(['timer', 'outcome'])
  expect([recorder.facts.waits.size, recorder.listeners]).toEqual([0, 0])
})

it('the instant of a time-out is that of the first pass', async () => {
  const recorder = new Recorder([], atOnce)
  expect(await suspended(recorder, asks, new MockClock(1_000))).toMatchObject({ wakeAt: HOUR + 1_000, children: [] })
  expect(await suspended(recorder, asks, new MockClock(HOUR / 2))).toMatchObject({ wakeAt: HOUR + 1_000 })
  expect(recorder.entries).toHaveLength(1)
})

it('W33: a signal that comes while the time-out is acted upon is not lost', async () => {
  const clock = new MockClock(0)
  let expiring = (): void => {}
  const recorder = new Recorder([], atOnce)
  const expire = recorder.expire.bind(recorder)
  recorder.expire = async (position) => {
    expiring()
    await turns(5)
    return expire(position)
  }
  const walked = walk(recorder, clock, async (ctx) => {
    const heard = await ctx.waitForSignal('key', { timeout: 500 })
    await ctx.step('later', () => turns(20))
    return heard
  })
  await turns(20)
  expiring = () => void recorder.change((facts) => facts.signal('key', '"just in time"'))
  void clock.advance(500)
  expect(await walked).toMatchObject({ end: { value: { ok: true, payload: 'just in time' } } })
  expect(recorder.entries.map(({ type }) => type)).toEqual(['timer', 'outcome', 'outcome'])
})

it('a time-out of no time takes what is buffered, and else nothing', async () => {
  const body: Body = async (ctx) => [
    await ctx.waitForSignal('sent', { timeout: 0 }),
    await ctx.waitForSignal('unsent', { timeout: 0 }),
  ]
  const recorder = new Recorder([], atOnce)
  recorder.change((facts) => facts.signal('sent', '1'))
  expect(await walkToEnd(recorder, body)).toMatchObject({ value: [{ ok: true, payload: 1 }, { ok: false }] })
})

class PaymentError extends Error {
  override readonly name = 'PaymentError'
  readonly amount = 5n
}

it('a payload keeps what is beyond JSON, live and on replay', async () => {
  const payload = { at: new Date(5), map: new Map([[1, undefined]]), error: new PaymentError('declined') }
  const recorder = new Recorder([], atOnce)
  recorder.change((facts) => facts.signal('key', codec.encode(payload)))
  for (let pass = 0; pass < 2; pass += 1) {
    const end = await walkToEnd(recorder, asks)
    expect(end).toMatchObject({ value: { ok: true, payload: { at: payload.at, map: payload.map } } })
    expect(end).toMatchObject({ value: { payload: { error: { name: 'PaymentError', amount: 5n } } } })
  }
  // A process that knows the class finds it.
  expect(recorder.entries.at(-1)?.value).toContain('"PaymentError"')
})

it('one that is nested too deeply to be put into a result fails the wait, catchably', async () => {
  let deep: unknown = [new Date(0)]
  for (let level = 1; level < 499; level += 1) deep = [deep]
  const recorder = new Recorder([], atOnce)
  recorder.change((facts) => facts.signal('key', codec.encode(deep)))
  const end = await walkToEnd(recorder, (ctx) => asks(ctx).catch((error: unknown) => error))
  expect(end).toMatchObject({ type: 'returned', value: expect.any(SerializationError) })
})

it("W33: a key that another run waits on is refused, catchably, and replayed so when it is that run's no more", async () => {
  const body: Body = (ctx) => ctx.waitForSignal('key', { timeout: '1h' }).catch((error: unknown) => error)
  const recorder = new Recorder([], atOnce)
  recorder.change((facts) => facts.taken.add('key'))
  for (let pass = 0; pass < 2; pass += 1) {
    const end = await walkToEnd(recorder, body)
    expect(end).toMatchObject({ value: expect.any(SignalKeyTakenError) })
    expect(end).toMatchObject({ value: { runId: 'run', key: 'key', holder: 'another' } })
    recorder.change((facts) => facts.taken.clear())
  }
  expect(recorder.entries).toMatchObject([{ seq: 0, type: 'outcome', failed: true }])
})

it('W33: one signal resolves every open wait of the run on its key', async () => {
  const body: Body = async (ctx) => {
    const both = [ctx.waitForSignal('key'), ctx.waitForSignal('key', { timeout: '1h' })]
    await ctx.sleep(1)
    return [
      await ctx.sendSignal('key', 'me'),
      await Promise.all(both),
      await ctx.sendSignal('key'),
      await ctx.sendSignal('key'),
    ]
  }
  const heard = { ok: true, payload: 'me' }
  const recorder = new Recorder([], atOnce)
  const expected = { value: ['delivered', [heard, heard], 'buffered', 'replaced'] }
  expect(await walkToEnd(recorder, body)).toMatchObject(expected)
  const sent = recorder.facts.sent.length
  expect(await walkToEnd(recorder, body)).toMatchObject(expected)
  expect(recorder.facts.sent).toHaveLength(sent)
})

it('a payload is sent as it is when the call is made', async () => {
  const recorder = new Recorder([], atOnce)
  await walkToEnd(recorder, async (ctx) => {
    const order = { items: 1 }
    const sent = ctx.sendSignal('key', order)
    order.items = 2
    await sent
  })
  expect(recorder.facts.buffer.get('key')).toBe('{"items":1}')
})

it('a payload that cannot be stored is a rejection that is recorded', async () => {
  const body: Body = (ctx) => ctx.sendSignal('key', () => {}).catch((error: unknown) => error)
  const recorder = new Recorder([], atOnce)
  for (let pass = 0; pass < 2; pass += 1) {
    expect(await walkToEnd(recorder, body)).toMatchObject({ value: expect.any(SerializationError) })
  }
  expect(recorder.entries).toMatchObject([{ verb: 'sendSignal', failed: true }])
})

it('waits in memory for a moment before it is suspended for a signal, once a standstill', async () => {
  const scheduler = new HastyScheduler()
  const recorder = new Recorder([], atOnce)
  const { end } = await walk(recorder, new FastClock(1), (ctx) => ctx.waitForSignal('key'), scheduler)
  expect([end, scheduler.delays]).toMatchObject([{ type: 'suspended', wakeAt: null }, [100]])
  const answered = new Recorder([], atOnce)
  const walked = walk(answered, new FastClock(1), (ctx) => ctx.waitForSignal('key'))
  await turns(20)
  answered.change((facts) => facts.signal('key', '"soon"'))
  expect(await walked).toMatchObject({ end: { type: 'returned', value: { ok: true, payload: 'soon' } } })
})

it('a timer of a second or less keeps it in memory, a later one does not', async () => {
  const body =
    (ms: number): Body =>
    (ctx) =>
      Promise.race([ctx.waitForSignal('key'), ctx.sleep(ms)])
  expect(await suspended(new Recorder([], atOnce), body(1_001))).toMatchObject({ wakeAt: 1_001 })
  const clock = new MockClock(0)
  const walked = walk(new Recorder([], atOnce), clock, body(1_000))
  await turns(20)
  await clock.advance(1_000)
  expect(await walked).toMatchObject({ end: { type: 'returned' } })
})

it('is suspended for what is left, when others of its waits have come to their end in memory', async () => {
  const recorder = new Recorder([], atOnce)
  const walked = walk(recorder, new FastClock(1), async (ctx) => {
    await Promise.all([ctx.sleep(1), ctx.waitForSignal('a'), (await ctx.start('child')).result()])
    return ctx.waitForSignal('b')
  })
  await turns(20)
  recorder.change((facts) => facts.signal('a', '1'))
  recorder.change((facts) => facts.endChild('run~2', { status: 'SUCCESS', output: '1' }))
  expect(await walked).toMatchObject({ end: { type: 'suspended', wakeAt: null, children: [] } })
  expect(recorder.facts.openWaits()).toEqual([{ position: 4, key: 'b' }])
})

it('a pass that waits for a signal is waiting, and one that waits for the store is moving', async () => {
  let answer = (): void => {}
  const recorder = new Recorder(
    [],
    () =>
      new Promise<void>((resolve) => {
        answer = resolve
      }),
  )
  const pass = newPass({ port: recorder, entries: [], clock: new FastClock(1) })
  const walked = walkBody(pass, (ctx) => ctx.waitForSignal('key'))
  await turns(10)
  expect(pass.standing).toBe('moving')
  answer()
  await turns(10)
  expect(pass.standing).toBe('waiting')
  expect(await walked).toMatchObject({ type: 'suspended' })
})
