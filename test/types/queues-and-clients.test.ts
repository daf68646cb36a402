/** What is inferred of queues and clients; a line that must not compile is marked so. Checked by `tsc -p .`. */
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  Client,
  type Definition,
  define,
  Engine,
  type Explanation,
  type Handle,
  type Queue,
  type QueueStats,
  queue,
  type Reason,
  type RegisteredQueue,
  type Run,
  workflow,
} from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'

const convert = workflow('convert', async (ctx, file: string) => ctx.step('transcode', async () => `${file}.mp4`))
const square = workflow('square', { queue: 'media', retention: { success: '1d' } }, async (_ctx, n: number) => n * n)
const tick = workflow('tick', async (ctx) => {
  await ctx.sleep('1s')
})
const email = z.object({ to: z.string(), cc: z.string().default('nobody') })
const parsed = workflow(
  'parsed',
  { input: email, output: z.number().transform(String) },
  async (_ctx, { cc }) => cc.length,
)
const stateful = define<{ readonly db: number }>().workflow('stateful', async (ctx, n: number) => ctx.state.db + n)

const store = memory()
const media = queue('media', { workerConcurrency: 2 })
const engine = new Engine({
  store,
  queues: [media],
  listenQueues: ['media'],
  version: 'v1',
  definitions: [convert, square],
})
const untyped = new Client({ store })
const definitions = [convert, square, tick, parsed, stateful]
const fixed = [convert, square] as const
const typed = new Client<typeof definitions>({ store })
const typedFixed = new Client<typeof fixed>({ store })

/** Only its types are looked at. */
const never = (_calls: () => unknown): void => {}

describe('types of queues', () => {
  it('takes what is documented', () => {
    expectTypeOf(media).toEqualTypeOf<Queue>()
    never(() => {
      queue('all', {
        ...{ workerConcurrency: 1, globalConcurrency: 2, releaseWhileWaiting: true, priorityEnabled: true },
        ...{ rateLimiter: { limit: 5, period: '1s' }, partitioned: true, maxTasksPerIteration: 3 },
        ...{ basePollingInterval: '1s', maxPollingInterval: 5, lease: '30s', maxAttempts: 3, configVersion: 1 },
        ...{ backoff: { base: 1, factor: 2, max: '1m', jitter: 0.1 }, retention: { dead: 'forever', success: '1d' } },
      })
      // @ts-expect-error no such option
      queue('media', { concurrency: 2 })
      // @ts-expect-error no number
      queue('media', { workerConcurrency: '2' })
      // @ts-expect-error half a limit
      queue('media', { rateLimiter: { limit: 2 } })
      // @ts-expect-error no such word
      queue('media', { retention: 'never' })
      // @ts-expect-error a name is no queue
      new Engine({ store, queues: ['media'], definitions: [convert] })
    })
  })

  it('options of a start', () => {
    never(async () => {
      await engine.start(convert, 'a', { queue: 'media', delay: '1m', priority: -1, partitionKey: 'p' })
      await engine.start(convert, 'a', {
        queue: 'media',
        runAt: new Date(),
        dedupId: 'd',
        dedupPolicy: 'returnExisting',
      })
      await engine.start('convert', 'a', { id: 'x', kv: { a: 1, b: [new Date()] } })
      // @ts-expect-error a number is no instant
      await engine.start(convert, 'a', { queue: 'media', runAt: 5 })
      // @ts-expect-error no such policy
      await engine.start(convert, 'a', { queue: 'media', dedupId: 'd', dedupPolicy: 'replace' })
      // @ts-expect-error not of workflows
      await engine.start(convert, 'a', { maxAttempts: 3 })
      const many = await engine.startMany(
        convert,
        ['a', 'b'].map((file) => ({ input: file, options: { queue: 'media' } })),
      )
      expectTypeOf(many).toEqualTypeOf<Handle<string>[]>()
      expectTypeOf(await engine.startMany('square', [{ input: 2 }])).toEqualTypeOf<Handle<number>[]>()
      // @ts-expect-error wrong input
      await engine.startMany('square', [{ input: 'a' }])
    })
  })

  it('what is told of them', () => {
    never(async () => {
      expectTypeOf(await engine.queues.list()).toEqualTypeOf<readonly RegisteredQueue[]>()
      expectTypeOf(await engine.queues.stats('media')).toEqualTypeOf<QueueStats>()
      expectTypeOf(await engine.queues.pause('media')).toEqualTypeOf<void>()
      expectTypeOf(
        await engine.queues.configure('media', { globalConcurrency: null, rateLimiter: { limit: 1, period: '1s' } }),
      ).toEqualTypeOf<RegisteredQueue>()
      // @ts-expect-error a knob of the process
      await engine.queues.configure('media', { workerConcurrency: 2 })
      expectTypeOf(await engine.runs.explain('x')).toEqualTypeOf<Explanation | undefined>()
      const explanation = await engine.runs.explain('x')
      for (const reason of explanation?.reasons ?? []) {
        expectTypeOf(reason).toEqualTypeOf<Reason>()
        if (reason.type === 'globalConcurrency') expectTypeOf(reason.holders).toEqualTypeOf<readonly string[]>()
        // @ts-expect-error only of limits
        else reason.holders
      }
      expectTypeOf<Run['kind']>().toEqualTypeOf<'workflow' | 'job' | 'stepRunner' | undefined>()
      expectTypeOf(await engine.sendSignal('k', 1)).toEqualTypeOf<'delivered' | 'buffered' | 'replaced'>()
      expectTypeOf(await engine.kv.get('k')).toEqualTypeOf<unknown>()
      expectTypeOf(await engine.kv.get<number>('k')).toEqualTypeOf<number | undefined>()
      expectTypeOf(await engine.kv.compareAndPut('k', undefined, 1)).toEqualTypeOf<boolean>()
    })
  })
})

describe('types of clients', () => {
  it('a typed one knows names, inputs and outputs, from a plain list and from a fixed one', () => {
    never(async () => {
      expectTypeOf(await typed.start('convert', 'outro', { queue: 'media' })).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await typed.start('square', 2)).toEqualTypeOf<Handle<number>>()
      expectTypeOf(await typed.start('tick')).toEqualTypeOf<Handle<void>>()
      expectTypeOf(await typed.start('parsed', { to: 'a' })).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await typed.start('stateful', 1)).toEqualTypeOf<Handle<number>>()
      expectTypeOf(await typedFixed.start('convert', 'outro')).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await (await typedFixed.start('square', 3)).result()).toEqualTypeOf<number>()
      expectTypeOf(await typed.startMany('convert', [{ input: 'a' }])).toEqualTypeOf<Handle<string>[]>()
      // @ts-expect-error unknown name
      await typed.start('nope', 1)
      // @ts-expect-error wrong input
      await typed.start('square', 'x')
      // @ts-expect-error no input
      await typed.start('convert')
      // @ts-expect-error an input that the schema does not take
      await typed.start('parsed', { too: 'a' })
      // @ts-expect-error wrong input
      await typed.startMany('square', [{ input: 'x' }])
      // @ts-expect-error unknown name
      await typedFixed.start('tick')
    })
  })

  it('an untyped one takes and gives unknown', () => {
    never(async () => {
      expectTypeOf(await untyped.start('anything', { a: 1 }, { queue: 'media' })).toEqualTypeOf<Handle<unknown>>()
      expectTypeOf(await untyped.start('anything')).toEqualTypeOf<Handle<unknown>>()
      expectTypeOf(await (await untyped.start('anything', 1)).result()).toEqualTypeOf<unknown>()
      expectTypeOf(await untyped.startMany('anything', [{ input: 1 }, { input: 'a' }])).toEqualTypeOf<
        Handle<unknown>[]
      >()
    })
  })

  it('by definition, both follow the definition', () => {
    never(async () => {
      for (const client of [typed, untyped]) {
        expectTypeOf(await client.start(convert, 'intro')).toEqualTypeOf<Handle<string>>()
        expectTypeOf(client.handle(convert, 'x')).toEqualTypeOf<Handle<string>>()
        expectTypeOf(client.handle<number>('x')).toEqualTypeOf<Handle<number>>()
        expectTypeOf(client.handle('x')).toEqualTypeOf<Handle<unknown>>()
        // @ts-expect-error wrong input
        await client.start(convert, 3)
      }
      expectTypeOf(typed.handle('convert', 'x')).toEqualTypeOf<Handle<string>>()
      expectTypeOf(untyped.handle('convert', 'x')).toEqualTypeOf<Handle<unknown>>()
    })
  })

  it('has what is documented, and goes to functions', () => {
    never(async () => {
      const cleanUp = async (client: Client): Promise<void> => client.close()
      await cleanUp(untyped)
      expectTypeOf(await typed.cancel('x')).toEqualTypeOf<boolean>()
      expectTypeOf(await typed.requeue('x')).toEqualTypeOf<boolean>()
      expectTypeOf(typed.runs).toEqualTypeOf(engine.runs)
      expectTypeOf(typed.kv).toEqualTypeOf(engine.kv)
      expectTypeOf(typed.queues).toEqualTypeOf(engine.queues)
      // @ts-expect-error a client has no definitions
      new Client({ store, definitions })
      // @ts-expect-error a client runs nothing
      await typed.launch()
    })
  })

  it('engines still go to functions that take any', () => {
    const takes = (_engine: Engine<readonly Definition<never, unknown, never>[]>): void => {}
    never(() => takes(engine))
  })
})
