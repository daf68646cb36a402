/** `queues`: what operators see of queues, and change while processes run. */
import { describe, expect, it, vi } from 'vitest'
import {
  Client,
  ConfigurationError,
  Engine,
  InvalidIdError,
  queue,
  UnknownQueueError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, until } from './support.ts'

const logger = silent

/** A value as a caller without types may give it. */
const untyped = (value: unknown): never => value as never

describe.each(KINDS)('queues on $kind', ({ place }) => {
  const echo = workflow('echo', async (_ctx, n: number) => n)

  it('Q25 are listed by name once an engine with them was launched, the internal one not', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const client = new Client({ store: home.connect(), logger })
    expect(await client.queues.list()).toEqual([])
    const queues = [queue('media', { workerConcurrency: 2 }), queue('api', { rateLimiter: { limit: 5, period: '1s' } })]
    const engine = ended(new Engine({ store: home.connect(), definitions: [echo], queues, logger }))
    expect(await engine.queues.list()).toEqual([])
    await engine.launch()
    expect((await client.queues.list()).map(({ name }) => name)).toEqual(['api', 'media'])
    expect((await engine.queues.list())[0]).toEqual({
      name: 'api',
      paused: false,
      globalConcurrency: undefined,
      releaseWhileWaiting: false,
      rateLimiter: { limit: 5, period: 1_000 },
      priorityEnabled: false,
      partitioned: false,
      retention: undefined,
      configVersion: 0,
      updatedAt: new Date(clock.now()),
    })
    await client.close()
  })

  it('what holds is that of the highest configVersion, whoever comes last', async () => {
    const home = place()
    const launched = async (limit: number, configVersion?: number): Promise<unknown> => {
      const options = { globalConcurrency: limit, ...(configVersion === undefined ? {} : { configVersion }) }
      const engine = new Engine({
        ...{ store: home.connect(), definitions: [echo], logger },
        queues: [queue('media', options)],
      })
      await engine.launch()
      const [media] = await engine.queues.list()
      await engine.shutdown()
      return [media?.globalConcurrency, media?.configVersion]
    }
    expect(await launched(1)).toEqual([1, 0])
    expect(await launched(2)).toEqual([2, 0])
    expect(await launched(3, 2)).toEqual([3, 2])
    expect(await launched(4, 1)).toEqual([3, 2])
    expect(await launched(5, 2)).toEqual([5, 2])
  })

  it('stats count what is there, by status', async () => {
    const clock = new MockClock()
    const opened = door()
    const gated = workflow('gated', async (ctx) => ctx.step('wait', () => opened.opened))
    const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))
    const queues = [queue('media', { partitioned: true, globalConcurrency: 1 })]
    const store = place(clock).connect()
    const engine = ended(new Engine({ store, definitions: [echo, gated, nap], queues, logger }))
    await engine.launch()
    const on = (partitionKey?: string) => ({
      queue: 'media',
      ...(partitionKey === undefined ? {} : { partitionKey }),
    })
    await (await engine.start(echo, 1, on('done'))).result()
    await engine.start(gated, undefined, on('a'))
    await engine.start(nap, undefined, on('b'))
    await clock.advance(1)
    await engine.start(echo, 1, on('a'))
    await engine.start(echo, 1, on())
    await engine.start(echo, 1, { ...on('c'), delay: '1d' })
    expect(await engine.queues.stats('media')).toEqual({ enqueued: 2, delayed: 1, pending: 1, waiting: 1, keyless: 1 })
    opened.open()
  })

  it('a paused queue starts and resumes nothing until it is resumed, across restarts', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const seen: string[] = []
    const nap = workflow('nap', async (ctx, name: string) => {
      seen.push(`${name} begins`)
      await ctx.sleep('1m')
      seen.push(`${name} ends`)
    })
    const engines = (): Engine =>
      ended(new Engine({ store: home.connect(), definitions: [nap], queues: [queue('media')], logger }))
    const first = engines()
    await first.launch()
    const a = await first.start(nap, 'a', { queue: 'media' })
    await clock.advance('1s')
    await first.queues.pause('media')
    await first.queues.pause('media')
    expect((await first.queues.list())[0]?.paused).toBe(true)
    const b = await first.start(nap, 'b', { queue: 'media' })
    await first.shutdown()
    const second = engines()
    await second.launch()
    await clock.advance('1h')
    expect(seen.filter((line) => line === 'a ends' || line.startsWith('b'))).toEqual([])
    const client = new Client({ store: home.connect(), logger })
    await client.queues.resume('media')
    await client.close()
    // What another store object writes is noticed within milliseconds of real time.
    await vi.waitFor(() => expect(seen).toContain('b begins'))
    await clock.advance('2m')
    expect([await second.handle(a.id).status(), await second.handle(b.id).status()]).toEqual(['SUCCESS', 'SUCCESS'])
    expect(seen.filter((line) => line.endsWith('ends')).sort()).toEqual(['a ends', 'b ends'])
  })

  it('configure changes the limits of all processes at run time, and keeps the configVersion', async () => {
    const opened = door()
    let running = 0
    const gated = workflow('gated', async (ctx) => {
      running += 1
      await ctx.step('wait', () => opened.opened)
    })
    const queues = [queue('media', { globalConcurrency: 1, configVersion: 3, retention: { success: '1h' } })]
    const engine = ended(new Engine({ store: place().connect(), definitions: [gated], queues, logger }))
    await engine.launch()
    await engine.startMany('gated', Array(5).fill({ input: undefined, options: { queue: 'media' } }))
    await until(() => running === 1)
    const changed = await engine.queues.configure('media', { globalConcurrency: 3 })
    expect(changed).toMatchObject({ globalConcurrency: 3, configVersion: 3, retention: { success: 3_600_000 } })
    await until(() => running === 3)
    expect(await engine.queues.stats('media')).toMatchObject({ enqueued: 2, pending: 3 })
    await engine.queues.configure('media', { globalConcurrency: null, retention: null, configVersion: 9 })
    await until(() => running === 5)
    expect((await engine.queues.list())[0]).toMatchObject({
      ...{ globalConcurrency: undefined, retention: undefined, configVersion: 9 },
    })
    opened.open()
  })

  it('every knob is changed by its own name', async () => {
    const queues = [queue('media', { globalConcurrency: 2 })]
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], queues, logger }))
    await engine.launch()
    const knobs = {
      globalConcurrency: 7,
      releaseWhileWaiting: true,
      priorityEnabled: true,
      partitioned: true,
    }
    const retention = { success: 1, error: 'forever', dead: 'forever', cancelled: 2 } as const
    const rateLimiter = { limit: 3, period: 4_000 }
    expect(await engine.queues.configure('media', { ...knobs, retention, rateLimiter })).toMatchObject({
      ...knobs,
      retention,
      rateLimiter,
    })
    expect(await engine.queues.configure('media', { rateLimiter: null })).toMatchObject({
      ...knobs,
      rateLimiter: undefined,
    })
    expect(await engine.queues.configure('media', {})).toMatchObject(knobs)
  })

  it('what may not be is refused, and changes nothing', async () => {
    const queues = [queue('media')]
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], queues, logger }))
    await engine.launch()
    for (const changes of [
      { globalConcurrency: 0 },
      { releaseWhileWaiting: true },
      { releaseWhileWaiting: true, globalConcurrency: null },
      { rateLimiter: { limit: 1 } },
      { retention: { success: 0 } },
      { configVersion: -1 },
      { workerConcurrency: 2 },
      { pause: true },
      5,
    ]) {
      const error = await refusal(engine.queues.configure('media', untyped(changes)))
      expect(['CONFIGURATION', 'INVALID_DURATION']).toContain(Reflect.get(Object(error), 'code'))
      expect(error).toMatchObject({ message: expect.stringContaining("configure 'media'") })
    }
    expect((await engine.queues.list())[0]).toMatchObject({ releaseWhileWaiting: false, globalConcurrency: undefined })
    expect(await refusal(engine.queues.configure('media', untyped(undefined)))).toBeInstanceOf(ConfigurationError)
  })

  it('a queue that nobody has registered is unknown', async () => {
    const queues = [queue('media'), queue('api')]
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], queues, logger }))
    await engine.launch()
    for (const call of [
      () => engine.queues.stats('medai'),
      () => engine.queues.pause('medai'),
      () => engine.queues.resume('medai'),
      () => engine.queues.configure('medai', { globalConcurrency: 1 }),
      () => engine.queues.configure('medai', { globalConcurrency: 1, releaseWhileWaiting: true }),
    ]) {
      const error = await refusal(call())
      expect(error).toBeInstanceOf(UnknownQueueError)
      expect(error).toMatchObject({ queue: 'medai', known: ['api', 'media'] })
    }
    for (const name of ['', 5, undefined]) {
      expect(await refusal(engine.queues.pause(untyped(name)))).toBeInstanceOf(InvalidIdError)
      expect(await refusal(engine.queues.stats(untyped(name)))).toBeInstanceOf(InvalidIdError)
    }
  })
})
