import { expect, it } from 'vitest'
import type { Starter } from '../../../src/api/definition.ts'
import { workflowContext } from '../../../src/api/replayed-context.ts'
import type { EngineEvent } from '../../../src/core/engine-events.ts'
import { sha256Hex } from '../../../src/core/ids.ts'
import {
  ConfigurationError,
  EngineShutdownError,
  InputMismatchError,
  InvalidIdError,
  NestedDurableCallError,
  QueueDeduplicatedError,
  RunCancelledError,
  RunFailedError,
  RunNotFoundError,
  SerializationError,
  StoreClosedError,
  StoreUnavailableError,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import type { PassEnd } from '../../../src/runtime/replay/pass.ts'
import type { Ending } from '../../../src/store/records.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { door, refusal } from '../../api/engine/support.ts'
import { Recorder } from './recorder.ts'
import {
  type Body,
  FastClock,
  HastyScheduler,
  newPass,
  starter,
  turns,
  walk,
  walkBody,
  walkToEnd,
} from './rehearsal.ts'
import { codec } from './values.ts'

const atOnce = async (): Promise<void> => {}
const done: Ending = { status: 'SUCCESS', output: '"done"' }

/** One pass, on a clock that stands still. */
async function pass(recorder: Recorder, body: Body): Promise<PassEnd> {
  return (await walk(recorder, new MockClock(0), body)).end
}

it('W34: ids are those of their position, others after a requeue, and hashed when they would be too long', async () => {
  const ids = async (runId: string, epoch: number): Promise<readonly string[]> => {
    const recorder = new Recorder([], atOnce)
    const body: Body = async (ctx) => {
      await ctx.now()
      await ctx.start('child')
    }
    await walkBody(newPass({ runId, epoch, port: recorder, entries: [], clock: new MockClock(0) }), body)
    return [...recorder.facts.children.keys()]
  }
  expect([await ids('run', 0), await ids('run', 2)]).toEqual([['run~1'], ['run~2.1']])
  const long = 'x'.repeat(126)
  expect([await ids(long, 0), await ids(`${long}x`, 0)]).toEqual([[`${long}~1`], [sha256Hex(`${long}x~1`)]])
})

it('W34: is started with its record, by one commit, and found again by a replay', async () => {
  const body: Body = async (ctx) => {
    const attached = await ctx.start('child', { n: 1 })
    const detached = await ctx.start('child', undefined, { detached: true, id: 'given' })
    return [attached, detached].map(({ id, newlySubmitted }) => ({ id, newlySubmitted }))
  }
  const recorder = new Recorder([], atOnce)
  const value = [
    { id: 'run~0', newlySubmitted: true },
    { id: 'given', newlySubmitted: true },
  ]
  expect(await pass(recorder, body)).toMatchObject({ value })
  expect([...recorder.facts.children]).toMatchObject([
    ['run~0', { parentId: 'run', input: '{"n":1}' }],
    ['given', { parentId: null }],
  ])
  for (const { entries, children } of recorder.moments) expect(children.size).toBe(entries.length)
  recorder.change((facts) => facts.children.clear())
  expect(await pass(recorder, body)).toMatchObject({ value })
  expect(recorder.facts.children.size).toBe(0)
})

it('is started with the input as it was when the call was made', async () => {
  const recorder = new Recorder([], atOnce)
  await pass(recorder, async (ctx) => {
    const order = { item: '' }
    const started = ['a', 'b'].map((item) => {
      order.item = item
      return ctx.start('child', order)
    })
    await Promise.all(started)
  })
  const inputs = [...recorder.facts.children.values()].map(({ input }) => input)
  expect(inputs).toEqual(['{"item":"a"}', '{"item":"b"}'])
})

it('what a start is refused with is recorded, and leaves no gap', async () => {
  const recorder = new Recorder([], atOnce)
  recorder.change((facts) => facts.children.set('known', { definition: 'x', input: '0', parentId: null, ending: null }))
  const body: Body = async (ctx) => {
    const starts = [
      ctx.start('refused'),
      ctx.start('child', () => {}),
      ctx.start('child', 1, { id: 'known' }),
      ctx.start('child', 1, { dedupId: 'held', queue: 'q' }),
      ctx.step('beside', () => 1),
      ctx.start('child', 2),
    ]
    return (await Promise.allSettled(starts)).map((end) => (end.status === 'rejected' ? end.reason : 'fine'))
  }
  const errors = [expect.any(Error), expect.any(SerializationError), expect.any(InputMismatchError)]
  const value = [...errors, expect.any(QueueDeduplicatedError), 'fine', 'fine']
  expect(await pass(recorder, body)).toMatchObject({ value })
  expect(recorder.entries.map(({ position }) => position).sort()).toEqual([0, 1, 2, 3, 4, 5])
  expect(await pass(recorder, body)).toMatchObject({ value })
  expect(recorder.entries).toHaveLength(6)
})

it('arguments that are nonsense are refused at the call', async () => {
  const refusals: unknown[] = []
  await pass(new Recorder([], atOnce), async (ctx) => {
    const untyped: { start(...args: unknown[]): unknown; waitForSignal(...args: unknown[]): unknown } = ctx
    for (const act of [
      () => untyped.start(undefined),
      () => untyped.start(''),
      () => untyped.start('child', 1, { detached: 'yes' }),
      () => untyped.waitForSignal('a\n'),
      () => untyped.waitForSignal('a', { timeOut: 5 }),
    ]) {
      refusals.push(await refusal(Promise.resolve().then(act)))
    }
  })
  const [id, config] = [expect.any(InvalidIdError), expect.any(ConfigurationError)]
  expect(refusals).toEqual([id, id, config, id, config])
})

it('a child that has ended already is no reason to be suspended', async () => {
  const recorder = new Recorder([], atOnce)
  const body: Body = async (ctx) => {
    const child = await ctx.start('child')
    recorder.change((facts) => facts.endChild(child.id, done))
    return [await child.result(), await child.result()]
  }
  expect(await pass(recorder, body)).toEqual({ type: 'returned', value: ['done', 'done'] })
  expect(recorder.entries.map(({ verb, name }) => `${verb} ${name}`)).toEqual([
    'start child',
    'result run~0',
    'result run~0',
  ])
})

it('is suspended until one of its children ends, and waits a moment for that before', async () => {
  const body: Body = async (ctx) => {
    const children = [await ctx.start('a'), await ctx.start('b')]
    return Promise.all(children.map((child) => child.result()))
  }
  const recorder = new Recorder([], atOnce)
  const scheduler = new HastyScheduler()
  const { end } = await walk(recorder, new FastClock(1), body, scheduler)
  const children = [
    { position: 2, runId: 'run~0' },
    { position: 3, runId: 'run~1' },
  ]
  expect([end, scheduler.delays]).toEqual([{ type: 'suspended', wakeAt: null, children, entries: [] }, [100]])
  recorder.change((facts) => facts.endChild('run~1', done))
  expect(await walk(recorder, new FastClock(1), body, scheduler)).toMatchObject({ end: { children: [children[0]] } })
  const walked = walk(recorder, new FastClock(1), body)
  await turns(20)
  recorder.change((facts) => facts.endChild('run~0', done))
  expect(await walked).toMatchObject({ end: { type: 'returned', value: ['done', 'done'] } })
  expect(recorder.listeners).toBe(0)
})

const cause = codec.encode(Object.assign(new RangeError('too much'), { amount: 7n }))
const failures: Record<string, readonly [Ending | 'removed', unknown, object]> = {
  ERROR: [
    { status: 'ERROR', failure: { kind: 'error', error: cause } },
    expect.any(RunFailedError),
    { kind: 'error', attempts: 3, reason: 'too much', cause: { name: 'RangeError', amount: 7n } },
  ],
  DEAD: [
    { status: 'DEAD', failure: { kind: 'crashed', error: null } },
    expect.any(RunFailedError),
    { kind: 'crashed', attempts: 3 },
  ],
  CANCELLED: [
    { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } },
    expect.any(RunCancelledError),
    { reason: 'cancelled' },
  ],
  'CANCELLED by its timeout': [
    { status: 'CANCELLED', failure: { kind: 'timeout', error: null } },
    expect.any(RunCancelledError),
    { reason: 'timeout' },
  ],
  gone: ['removed', expect.any(RunNotFoundError), {}],
}

it.each(Object.entries(failures))('the result of a child that is %s throws, the same on replay', async (_, how) => {
  const [ending, error, fields] = how
  const recorder = new Recorder([], atOnce)
  const body: Body = async (ctx) => {
    const child = await ctx.start('child')
    if (recorder.facts.children.get(child.id)?.ending === null) {
      recorder.change((facts) => facts.endChild(child.id, ending))
    }
    return child.result().catch((reason: unknown) => reason)
  }
  for (let replay = 0; replay < 2; replay += 1) {
    const end = await pass(recorder, body)
    expect(end).toMatchObject({ value: error })
    expect(end).toMatchObject({ value: { runId: 'run~0', ...fields } })
  }
})

it('is not suspended while it asks how a child has failed', async () => {
  const recorder = new Recorder([], atOnce)
  recorder.attempts = async () => {
    // Longer than it waits before it is suspended.
    await new Promise((resolve) => setTimeout(resolve, 150))
    return 1
  }
  const body: Body = async (ctx) => (await ctx.start('child')).result().catch((reason: unknown) => reason)
  const walked = walk(recorder, new FastClock(1), body)
  await turns(10)
  recorder.change((facts) => facts.endChild('run~0', { status: 'DEAD', failure: { kind: 'crashed', error: null } }))
  expect(await walked).toMatchObject({ end: { type: 'returned', value: { code: 'RUN_FAILED' } } })
})

it('trouble of the store is no outcome: it is asked again', async () => {
  const recorder = new Recorder([], atOnce)
  const trouble = new StoreUnavailableError({ store: 'model', problem: 'busy' })
  let left = 2
  const flaky = async <T>(answer: () => Promise<T>): Promise<T> => {
    left -= 1
    if (left >= 0) throw trouble
    return answer()
  }
  const [ending, attempts] = [recorder.ending.bind(recorder), recorder.attempts.bind(recorder)]
  recorder.ending = (id) => flaky(() => ending(id))
  recorder.attempts = () => flaky(attempts)
  const failed: Ending = { status: 'DEAD', failure: { kind: 'crashed', error: null } }
  const scheduler = new HastyScheduler()
  const body: Body = async (ctx) => {
    const child = await ctx.start('child')
    recorder.change((facts) => facts.endChild(child.id, failed))
    return child.result().catch((reason: unknown) => {
      left = 1
      return reason
    })
  }
  const { end } = await walk(recorder, new FastClock(1), body, scheduler)
  expect(end).toMatchObject({ value: { code: 'RUN_FAILED', attempts: 3 } })
  expect(scheduler.delays).toEqual([1_000, 1_000])
})

it('a store that answers no more ends the pass, and nothing is recorded of what it did not say', async () => {
  const recorder = new Recorder([], atOnce)
  recorder.attempts = () => Promise.reject(new StoreClosedError({ store: 'model' }))
  const body: Body = async (ctx) => {
    const child = await ctx.start('child')
    recorder.change((facts) => facts.endChild(child.id, { status: 'DEAD', failure: { kind: 'crashed', error: null } }))
    return child.result()
  }
  expect(await pass(recorder, body)).toMatchObject({ type: 'failed', error: { code: 'STORE_CLOSED' } })
  await turns(5)
  expect(recorder.entries).toHaveLength(1)
})

it.each([
  ['that passes', new StoreUnavailableError({ store: 'model', problem: 'busy' }), 'returned'],
  ['that does not', new EngineShutdownError({}), 'failed'],
] as const)('trouble %s in preparing a start is no outcome', async (_, trouble, type) => {
  const recorder = new Recorder([], atOnce)
  let asked = 0
  const troubled: Starter = {
    prepare: async (start, placing) => {
      asked += 1
      if (asked === 1) throw trouble
      return starter.prepare(start, placing)
    },
  }
  const scheduler = new HastyScheduler()
  const walked = newPass({ port: recorder, entries: [], clock: new FastClock(1), scheduler })
  const host = { pass: walked, state: undefined, logger: silent, starter: troubled }
  const end = await walked.walk(async () => (await workflowContext(host, undefined).start('child')).id)
  expect([end.type, recorder.entries.length]).toEqual([type, type === 'returned' ? 1 : 0])
})

it('a pass that is aborted while a start is prepared starts nothing, and does not wait for it', async () => {
  const recorder = new Recorder([], atOnce)
  const preparing = door()
  const slow: Starter = {
    prepare: async (start, placing) => {
      await preparing.opened
      return starter.prepare(start, placing)
    },
  }
  const walked = newPass({ port: recorder, entries: [], clock: new FastClock(1) })
  const host = { pass: walked, state: undefined, logger: silent, starter: slow }
  const end = walked.walk(async () => workflowContext(host, undefined).start('child'))
  await turns(10)
  expect(walked.standing).toBe('userCode')
  walked.abort('cancelled', { patient: true })
  expect(await end).toMatchObject({ type: 'aborted' })
  preparing.open()
  await turns(20)
  expect([recorder.facts.children.size, recorder.entries.length]).toEqual([0, 0])
})

it('a child that is used when the pass is over is told of', async () => {
  const events: EngineEvent[] = []
  const recorder = new Recorder([], atOnce)
  let again = (): void => {}
  const walked = newPass({
    ...{ port: recorder, entries: [], clock: new MockClock(0) },
    onEvent: (event) => events.push(event),
  })
  await walkBody(walked, async (ctx) => {
    const child = await ctx.start('child')
    again = () => void child.result()
  })
  again()
  expect(events).toMatchObject([
    { type: 'call.dropped', call: "result 'run~0'", site: expect.stringContaining('children.test.ts') },
  ])
})

it('calls that a body has not awaited when it ends are told of, as nothing comes of them', async () => {
  const events: EngineEvent[] = []
  const recorder = new Recorder([], atOnce)
  const walked = newPass({
    ...{ port: recorder, entries: [], clock: new MockClock(0) },
    onEvent: (event) => events.push(event),
  })
  const end = await walkBody(walked, async (ctx) => {
    await Promise.race([ctx.step('begun', async () => 1), ctx.step('begun, too', async () => 2)])
    void ctx.step('send mail', async () => 3)
    void ctx.start('child')
    return 'done'
  })
  expect(end).toMatchObject({ type: 'returned', value: 'done' })
  expect(events.filter(({ type }) => type === 'calls.notMade')).toEqual([
    { type: 'calls.notMade', runId: 'run', calls: ["step 'send mail'", "start 'child'"] },
  ])
})

it('W8: no durable call is made inside a step', async () => {
  const recorder = new Recorder([], atOnce)
  const end = await walkToEnd(recorder, async (ctx) => {
    const child = await ctx.start('child')
    return ctx.step('step', async () => {
      const calls = [
        () => ctx.start('child'),
        () => child.result(),
        () => ctx.waitForSignal('key'),
        () => ctx.sendSignal('key'),
      ]
      return Promise.all(calls.map((call) => refusal(Promise.resolve().then(call))))
    })
  })
  const nested = expect.any(NestedDurableCallError)
  expect(end).toMatchObject({ value: [nested, nested, nested, nested] })
  expect(recorder.entries).toHaveLength(2)
})

it('a child is not thenable', async () => {
  const end = await pass(new Recorder([], atOnce), async (ctx) => {
    const child = await ctx.start('child')
    return [typeof child.result, 'then' in child]
  })
  expect(end).toMatchObject({ value: ['function', false] })
})

it('a start that is dropped and refused takes no process down', async () => {
  const rejections: unknown[] = []
  const tell = (reason: unknown): void => void rejections.push(reason)
  process.on('unhandledRejection', tell)
  await pass(new Recorder([], atOnce), async (ctx) => {
    void ctx.start('refused')
    await ctx.sleep(0)
    await ctx.step('later', () => turns(10))
  })
  await turns(5)
  process.off('unhandledRejection', tell)
  expect(rejections).toEqual([])
})
