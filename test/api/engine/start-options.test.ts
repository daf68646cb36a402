/** What a start may say of its run, what is refused, and what is stored. */
import { describe, expect, it } from 'vitest'
import {
  Client,
  ConfigurationError,
  Engine,
  InvalidDurationError,
  InvalidIdError,
  type PerdureError,
  queue,
  SerializationError,
  type StartOptions,
  UnknownQueueError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import type { NewRun } from '../../../src/store/contract.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { ended, refusal } from './support.ts'
import type { TroubleStore } from './trouble-store.ts'

const logger = silent

/** A value as a caller without types may give it. */
const untyped = (value: unknown): never => value as never

const echo = workflow('echo', async (_ctx, value: number) => value)
const convert = workflow('convert', { queue: 'media' }, async (_ctx, value: number) => value)
const queues = [queue('media'), queue('customers', { partitioned: true }), queue('urgent', { priorityEnabled: true })]
const KEY = { queue: 'customers', partitionKey: 'c1' } as const

/** Options without a queue, what is refused in them, and what the message says. */
const REFUSED: readonly (readonly [string, unknown, new (...args: never[]) => PerdureError, RegExp])[] = [
  ['a delay without a queue', { delay: '1s' }, ConfigurationError, /start\.delay: .*on none.*beside queue/],
  ['a delay of nothing without a queue', { delay: 0 }, ConfigurationError, /start\.delay/],
  ['an instant without a queue', { runAt: new Date() }, ConfigurationError, /start\.runAt/],
  ['a dedupId without a queue', { dedupId: 'd' }, ConfigurationError, /start\.dedupId/],
  ['a partition key without a queue', { partitionKey: 'p' }, ConfigurationError, /start\.partitionKey/],
  ['a delay beside an instant', { queue: 'media', delay: 1, runAt: new Date() }, ConfigurationError, /beside runAt/],
  ['a delay that is none', { queue: 'media', delay: 'soon' }, InvalidDurationError, /start\.delay/],
  ['a negative delay', { queue: 'media', delay: -1 }, InvalidDurationError, /start\.delay/],
  ['an instant that is a number', { queue: 'media', runAt: 5 }, ConfigurationError, /start\.runAt: .*a Date/],
  ['an instant that is none', { queue: 'media', runAt: new Date(Number.NaN) }, ConfigurationError, /start\.runAt/],
  ['a policy without an id', { queue: 'media', dedupPolicy: 'reject' }, ConfigurationError, /beside dedupId/],
  ['another policy', { queue: 'media', dedupId: 'd', dedupPolicy: 'replace' }, ConfigurationError, /'returnExisting'/],
  ['an empty dedupId', { queue: 'media', dedupId: '' }, InvalidIdError, /dedupId/],
  ['a dedupId that is a number', { queue: 'media', dedupId: 5 }, InvalidIdError, /dedupId/],
  ['an empty partition key', { queue: 'customers', partitionKey: '' }, InvalidIdError, /partition key/],
  ['a long partition key', { queue: 'customers', partitionKey: 'x'.repeat(256) }, InvalidIdError, /255 bytes/],
  [
    'a partition key elsewhere',
    { queue: 'media', partitionKey: 'p' },
    ConfigurationError,
    /'media' is not partitioned/,
  ],
  ['a queue that is unknown', { queue: 'medai' }, UnknownQueueError, /'medai'.*Registered: media, customers, urgent/],
  ['an empty queue', { queue: '' }, InvalidIdError, /queue name/],
  ['the queue as an object', { queue: queue('media') }, InvalidIdError, /queue name/],
  ["a queue of the library's", { queue: 'perdure:x' }, InvalidIdError, /reserved/],
  ['a priority of a half', { queue: 'urgent', priority: 0.5 }, ConfigurationError, /start\.priority/],
  [
    'a priority of 33 bits',
    { queue: 'urgent', priority: 2 ** 31 },
    ConfigurationError,
    /from -2147483648 to 2147483647/,
  ],
  ['a priority in words', { queue: 'urgent', priority: 'high' }, ConfigurationError, /start\.priority/],
  ['maxAttempts', { maxAttempts: 3 }, ConfigurationError, /there is no such option/],
  ['a misspelt option', { queue: 'media', dedupID: 'd' }, ConfigurationError, /did you mean 'dedupId'\?/],
  ['values that are none', { kv: 5 }, ConfigurationError, /start\.kv/],
  ['values in a list', { kv: [1] }, ConfigurationError, /start\.kv/],
  ['values in a map', { kv: new Map([['k', 1]]) }, ConfigurationError, /start\.kv/],
  ['a key that is empty', { kv: { '': 1 } }, InvalidIdError, /KV key/],
  ["a key of the library's", { kv: { 'perdure:x': 1 } }, InvalidIdError, /reserved/],
  ['a value that cannot be stored', { kv: { k: () => {} } }, SerializationError, /function/],
  ['a value that is none', { kv: { k: undefined } }, SerializationError, /'k' has no value/],
  ['a value that is too long', { kv: { k: 'x'.repeat(1024 * 1024) } }, SerializationError, /'k' has 1048578 bytes/],
]

describe.each(KINDS)('options of a start on $kind', ({ place }) => {
  const planned = ({ commands }: TroubleStore): NewRun | undefined =>
    commands.flatMap((command) => (command.type === 'enqueue' ? command.runs : [])).at(-1)

  it.each(REFUSED)('Q3 Q29 refuses %s, and stores nothing', async (_what, options, errorClass, message) => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [echo, convert], queues, logger }))
    const one = await refusal(engine.start(echo, 1, untyped(options)))
    expect(one).toBeInstanceOf(errorClass)
    expect(one).toMatchObject({ message: expect.stringMatching(message) })
    const good = { input: 1, options: { id: 'good' } }
    const many = await refusal(engine.startMany(echo, [good, { input: 1, options: untyped(options) }]))
    expect(many).toEqual(one)
    expect((await engine.runs.list()).runs).toEqual([])
    expect(store.commands).toEqual([])
  })

  it('keeps what is given', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [echo], queues, logger }))
    const runAt = new Date('2100-01-01')
    const options: StartOptions = {
      ...{ id: 'r', queue: 'customers', partitionKey: 'c1', priority: -3, runAt },
      ...{ dedupId: 'd', dedupPolicy: 'returnExisting', timeout: '1m', kv: { a: 1, b: new Date(5) } },
    }
    await engine.start(echo, 1, options)
    expect(planned(store)).toMatchObject({
      ...{ id: 'r', definition: 'echo', kind: 'workflow', queue: 'customers', partitionKey: 'c1', priority: -3 },
      ...{ due: { type: 'at', instant: runAt.getTime() }, dedup: { id: 'd', policy: 'returnExisting' } },
      ...{ timeoutMs: 60_000, maxRecoveries: 50, parentId: null, claim: null },
      kv: [{ type: 'put', key: 'a', value: '1' }, { key: 'b' }],
    })
    expect(await engine.runs.get('r')).toMatchObject({
      ...{ status: 'DELAYED', queue: 'customers', partitionKey: 'c1', priority: -3, dedupId: 'd', runAt },
      ...{ wakeAt: undefined, version: undefined, parentId: undefined, kind: 'workflow' },
    })
    expect(await engine.kv.get('b')).toEqual(new Date(5))
  })

  it('a run goes to the queue of its start, else to that of its definition, else to none', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [echo, convert], queues, logger }))
    const queueOf = async (start: Promise<{ readonly id: string }>): Promise<string | undefined> =>
      (await engine.runs.get((await start).id))?.queue
    expect(await queueOf(engine.start(echo, 1))).toBeUndefined()
    expect(await queueOf(engine.start(echo, 1, { queue: 'urgent' }))).toBe('urgent')
    expect(await queueOf(engine.start(convert, 1))).toBe('media')
    expect(await queueOf(engine.start(convert, 1, { queue: 'urgent' }))).toBe('urgent')
    expect(await queueOf(engine.start(convert, 1, { delay: '1s', dedupId: 'd' }))).toBe('media')
    expect(await refusal(engine.start(convert, 1, { partitionKey: 'p' }))).toMatchObject({ code: 'CONFIGURATION' })
  })

  it('priority 0 and the edges of 32 bits are fine, also where no queue is', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], queues, logger }))
    for (const priority of [0, 2 ** 31 - 1, -(2 ** 31)]) {
      const run = await engine.start(echo, 1, { priority })
      expect(await engine.runs.get(run.id)).toMatchObject({ priority, status: 'ENQUEUED' })
    }
  })

  it('a delay counts from the clock of the store; what is past, and nothing, is at once', async () => {
    const clock = new MockClock()
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [echo], queues, logger }))
    const at = async (options: StartOptions): Promise<unknown> => {
      const run = await engine.start(echo, 1, { queue: 'media', ...options })
      const { status, runAt } = (await engine.runs.get(run.id)) ?? {}
      return [status, runAt?.getTime()]
    }
    expect(await at({ delay: '1m' })).toEqual(['DELAYED', clock.now() + 60_000])
    expect(await at({ delay: 0.5 })).toEqual(['DELAYED', clock.now() + 1])
    expect(await at({ delay: Number.MAX_SAFE_INTEGER })).toEqual(['DELAYED', clock.now() + 8e15])
    expect(await at({ delay: 0 })).toEqual(['ENQUEUED', undefined])
    expect(await at({ runAt: new Date(clock.now() + 1) })).toEqual(['DELAYED', clock.now() + 1])
    expect(await at({ runAt: new Date(clock.now()) })).toEqual(['ENQUEUED', undefined])
    expect(await at({ runAt: new Date(-5) })).toEqual(['ENQUEUED', undefined])
  })

  it('delayed runs run when their time has come, in their place', async () => {
    const clock = new MockClock()
    const order: number[] = []
    const noted = workflow('noted', async (_ctx, n: number) => void order.push(n))
    const store = place(clock).connect()
    const engine = ended(
      new Engine({ store, definitions: [noted], queues: [queue('media', { workerConcurrency: 1 })], logger }),
    )
    await engine.launch()
    await engine.start(noted, 1, { queue: 'media', delay: '1m' })
    await engine.start(noted, 2, { queue: 'media', runAt: new Date(clock.now() + 30_000) })
    const now = await engine.start(noted, 3, { queue: 'media' })
    await now.result()
    await clock.advance('29s')
    expect(order).toEqual([3])
    await clock.advance('1s')
    expect(order).toEqual([3, 2])
    await clock.advance('30s')
    expect(order).toEqual([3, 2, 1])
  })

  it('values are put once, and only by the start that makes a run', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], queues, logger }))
    await engine.start(echo, 1, { id: 'a', queue: 'media', dedupId: 'd', kv: { k: 'first' } })
    await engine.start(echo, 1, { id: 'a', kv: { k: 'same id' } })
    await refusal(engine.start(echo, 2, { id: 'a', kv: { k: 'mismatch' } }))
    await refusal(engine.start(echo, 1, { queue: 'media', dedupId: 'd', kv: { k: 'rejected' } }))
    const held = { queue: 'media', dedupId: 'd', dedupPolicy: 'returnExisting' } as const
    await engine.start(echo, 1, { ...held, kv: { k: 'held' } })
    expect(await engine.kv.get('k')).toBe('first')
    const fresh = { input: 1, options: { kv: { k: 'many', l: 1 } } }
    await refusal(engine.startMany(echo, [fresh, { input: 2, options: { id: 'a' } }]))
    expect(await engine.kv.get('k')).toBe('first')
    await engine.startMany(echo, [fresh, { input: 1, options: { id: 'a', kv: { l: 2 } } }])
    expect([await engine.kv.get('k'), await engine.kv.get('l')]).toEqual(['many', 1])
  })

  it('a queue that was given partitions at run time takes keys', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [echo], queues, logger }))
    await engine.launch()
    expect(await refusal(engine.start(echo, 1, { queue: 'media', partitionKey: 'p' }))).toBeInstanceOf(
      ConfigurationError,
    )
    await engine.queues.configure('media', { partitioned: true })
    const run = await engine.start(echo, 1, { queue: 'media', partitionKey: 'p' })
    expect(await run.result()).toBe(1)
  })

  it('a client takes any queue and key, and refuses the rest as engines do', async () => {
    const store = place().connect()
    const client = new Client({ store, logger })
    for (const [what, options, errorClass, message] of REFUSED) {
      if (/elsewhere|unknown/.test(what)) continue
      const error = await refusal(client.start('echo', 1, untyped(options)))
      expect(error).toBeInstanceOf(errorClass)
      expect(error).toMatchObject({ message: expect.stringMatching(message) })
    }
    expect(store.commands).toEqual([])
    await client.start('echo', 1, { queue: 'nobody knows', partitionKey: 'p' })
    await client.start('echo', 1, KEY)
    expect((await client.runs.list({ queue: 'nobody knows' })).runs).toHaveLength(1)
    await client.close()
  })
})
