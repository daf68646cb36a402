/** The Client: gives work to processes whose code it does not have, and watches it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  Client,
  ConfigurationError,
  Engine,
  InputMismatchError,
  InvalidIdError,
  queue,
  RunFailedError,
  SerializationError,
  StoreClosedError,
  ValidationError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { freshFile, KINDS } from './places.ts'
import { door, ended, notebook, refusal, until } from './support.ts'

const logger = silent

/** A value as a caller without types may give it. */
const untyped = (value: unknown): never => value as never

class Declined extends Error {
  override readonly name = 'Declined'
}

describe.each(KINDS)('a client on $kind', ({ place }) => {
  const convert = workflow('convert', { timeout: '1h', maxRecoveries: 2 }, async (ctx, file: string) =>
    ctx.step('transcode', () => `${file}.mp4`),
  )

  it('Q1 starts by name what others run, whoever comes first, and awaits the result', async () => {
    const home = place()
    const client = new Client<[typeof convert]>({ store: home.connect(), logger })
    const early = await client.start('convert', 'intro', { queue: 'media' })
    expect([early.newlySubmitted, await early.status()]).toEqual([true, 'ENQUEUED'])
    expect(await client.runs.get(early.id)).toMatchObject({ definition: 'convert', kind: undefined, input: 'intro' })
    const engine = ended(
      new Engine({ store: home.connect(), definitions: [convert], queues: [queue('media')], logger }),
    )
    await engine.launch()
    const late = await client.start('convert', 'outro', { queue: 'media' })
    const unqueued = await client.start('convert', 'demo')
    expect(await Promise.all([early, late, unqueued].map((run) => run.result()))).toEqual([
      ...['intro.mp4', 'outro.mp4', 'demo.mp4'],
    ])
    expect(await early.fetchResult()).toEqual({ ok: true, output: 'intro.mp4' })
    expect((await client.runs.get(early.id))?.kind).toBe('workflow')
    expect((await client.runs.get(unqueued.id))?.queue).toBeUndefined()
    await client.close()
  })

  it('the first claim fills in what only the definition knows', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const slow = workflow('slow', { timeout: '1h', maxRecoveries: 2 }, async (ctx) => ctx.sleep('1d'))
    const client = new Client({ store: home.connect(), logger })
    const [theirs, ours] = [await client.start('slow'), await client.start('slow', undefined, { timeout: '2h' })]
    expect(client.handle('slow', ours.id).id).toBe(ours.id)
    await clock.advance('3h')
    const engine = ended(new Engine({ store: home.connect(), definitions: [slow], logger }))
    await engine.launch()
    await clock.advance('59m')
    expect([await theirs.status(), await ours.status()]).toEqual(['WAITING', 'WAITING'])
    await clock.advance('1m')
    expect([await theirs.status(), await ours.status()]).toEqual(['CANCELLED', 'WAITING'])
    await clock.advance('1h')
    expect(await refusal(ours.result())).toMatchObject({ code: 'RUN_CANCELLED', reason: 'timeout' })
    await client.close()
  })

  it('by a definition it follows the definition: queue, timeout, schema', async () => {
    const order = workflow(
      'order',
      { queue: 'orders', timeout: '5m', input: z.object({ sku: z.string() }) },
      async () => {},
    )
    const store = place().connect()
    const client = new Client({ store, logger })
    expect(await refusal(client.start(order, untyped({ sku: 5 })))).toBeInstanceOf(ValidationError)
    expect(store.commands).toEqual([])
    const run = await client.start(order, { sku: 'a' })
    expect(await client.runs.get(run.id)).toMatchObject({ queue: 'orders', kind: 'workflow' })
    const elsewhere = await client.start(order, { sku: 'a' }, { queue: 'urgent' })
    expect(await client.runs.get(elsewhere.id)).toMatchObject({ queue: 'urgent' })
    const planned = store.commands.flatMap((command) => (command.type === 'enqueue' ? command.runs : []))
    expect(planned).toMatchObject([{ timeoutMs: 300_000, maxRecoveries: 50, claim: null }, { timeoutMs: 300_000 }])
    await client.close()
  })

  it('an id stands for one definition and input, for clients and engines alike', async () => {
    const home = place()
    const client = new Client({ store: home.connect(), logger })
    const engine = ended(new Engine({ store: home.connect(), definitions: [convert], logger }))
    await client.start('convert', 'intro', { id: 'a' })
    expect((await engine.start(convert, 'intro', { id: 'a' })).newlySubmitted).toBe(false)
    expect((await client.start(convert, 'intro', { id: 'a' })).newlySubmitted).toBe(false)
    expect(await refusal(client.start('convert', 'outro', { id: 'a' }))).toBeInstanceOf(InputMismatchError)
    expect(await refusal(client.start('other', 'intro', { id: 'a' }))).toMatchObject({ existingDefinition: 'convert' })
    await client.close()
  })

  it('starts many, all or none', async () => {
    const client = new Client({ store: place().connect(), logger })
    const runs = await client.startMany('convert', [{ input: 'a' }, { input: 'b', options: { queue: 'media' } }])
    expect(runs.map(({ newlySubmitted }) => newlySubmitted)).toEqual([true, true])
    expect(await client.startMany('convert', [])).toEqual([])
    expect(await refusal(client.startMany('convert', [{ input: 1 }, { input: () => {} }]))).toBeInstanceOf(
      SerializationError,
    )
    expect((await client.runs.list()).runs).toHaveLength(2)
    await client.close()
  })

  it('cancels, requeues, signals, and sees errors as they were thrown', async () => {
    const home = place()
    const opened = door()
    const fails = workflow('fails', async (ctx) => {
      await ctx.step('wait', () => opened.opened)
      throw new Declined('no money')
    })
    const engine = ended(new Engine({ store: home.connect(), definitions: [fails], errors: [Declined], logger }))
    await engine.launch()
    const client = new Client({ store: home.connect(), errors: [Declined], logger })
    const stranger = new Client({ store: home.connect(), logger })
    const run = await client.start('fails')
    opened.open()
    const error = await refusal(run.result())
    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toHaveProperty('cause', expect.any(Declined))
    expect(await refusal(stranger.handle(run.id).result())).not.toHaveProperty('cause', expect.any(Declined))
    expect(await client.cancel(run.id)).toBe(false)
    expect(await client.requeue(run.id)).toBe(true)
    await refusal(run.result())
    expect((await client.runs.get(run.id))?.epoch).toBe(1)
    const later = await client.start('fails', undefined, { queue: 'later', delay: '1h' })
    expect([await later.cancel(), await client.cancel(later.id)]).toEqual([true, false])
    expect(await client.sendSignal('approved', { by: 'me' })).toBe('buffered')
    expect(await engine.sendSignal('approved')).toBe('replaced')
    expect(await refusal(client.sendSignal('', 1))).toBeInstanceOf(InvalidIdError)
    expect(await refusal(client.sendSignal('approved', () => {}))).toBeInstanceOf(SerializationError)
    await Promise.all([client.close(), stranger.close()])
  })

  it('takes anything for a name but what is none', async () => {
    const store = place().connect()
    const client = new Client({ store, logger })
    for (const name of ['', 'a\n', 'x'.repeat(256), 'perdure:x']) {
      expect(await refusal(client.start(name))).toBeInstanceOf(InvalidIdError)
    }
    for (const target of [undefined, null, 5, { name: 'convert', kind: 'workflow' }, () => {}]) {
      expect(await refusal(client.start(untyped(target)))).toBeInstanceOf(ConfigurationError)
    }
    expect(store.commands).toEqual([])
    await client.close()
  })

  it('after close every call is refused, and who awaits a result is told', async () => {
    const client = new Client({ store: place().connect(), logger })
    const run = await client.start('convert', 'intro')
    const result = refusal(run.result())
    const stored = client.kv.put('k', 1)
    await stored
    await Promise.all([client.close(), client.close()])
    await client.close()
    expect(await result).toBeInstanceOf(StoreClosedError)
    for (const call of [
      () => client.start('convert'),
      () => client.startMany('convert', []),
      () => client.cancel(run.id),
      () => client.requeue(run.id),
      () => client.sendSignal('k'),
      () => client.kv.get('k'),
      () => client.kv.put('k', 1),
      () => client.kv.scan(),
      () => client.runs.get(run.id),
      () => client.runs.explain(run.id),
      () => client.queues.list(),
      () => client.queues.pause('media'),
      () => client.handle(run.id).status(),
      () => run.result(),
      () => run.cancel(),
    ]) {
      expect(await refusal(call())).toBeInstanceOf(StoreClosedError)
    }
  })

  it('one that was never used closes; disposal is a close', async () => {
    const store = place().connect()
    await new Client({ store, logger }).close()
    const client = new Client({ store, logger })
    await client.runs.list()
    await client[Symbol.asyncDispose]()
    expect(await refusal(client.runs.list())).toBeInstanceOf(StoreClosedError)
    expect(store.calls('open')).toBe(1)
  })

  it('shares the store object of an engine, and leaves it open', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [convert], logger }))
    await engine.launch()
    const client = new Client({ store, logger })
    expect(await (await client.start('convert', 'a')).result()).toBe('a.mp4')
    await client.close()
    expect(await (await engine.start(convert, 'b')).result()).toBe('b.mp4')
    expect(store.calls('open')).toBe(1)
  })

  it('a start whose answer is lost is made once', async () => {
    const store = place().connect()
    const client = new Client({ store, logger })
    let lost = 0
    store.fate = (method) => (method === 'commit' && lost++ === 0 ? 'lost' : 'answered')
    const run = await client.start('convert', 'intro', { queue: 'media', dedupId: 'd' })
    expect(run.newlySubmitted).toBe(true)
    expect((await client.runs.list()).runs).toHaveLength(1)
    expect(lost).toBeGreaterThan(1)
    await client.close()
  })

  it('tells its logger of trouble', async () => {
    const store = place().connect()
    const log = notebook()
    const client = new Client({ store, logger: log })
    let failed = 0
    store.fate = (method) => (method === 'commit' && failed++ < 3 ? 'unavailable' : 'answered')
    await client.start('convert', 'intro')
    await until(() => log.messages('warn').length > 0)
    expect(log.messages('error')).toEqual(['the store cannot be used now; waiting for it'])
    await client.close()
  })
})

describe('options of a client', () => {
  it.each([
    ['none', undefined],
    ['no store', {}],
    ['a path for a store', { store: 'app.db' }],
    ['half a logger', { store: memory(), logger: { warn: () => {} } }],
    ['errors that are no classes', { store: memory(), errors: [5] }],
    ['definitions', { store: memory(), definitions: [] }],
  ])('%s', (_what, options) => {
    expect(() => new Client(untyped(options))).toThrow(ConfigurationError)
  })
})

describe('the process of a client', () => {
  it.each(['memory', 'sqlite'])(
    'exits by itself once it was closed: %s',
    async (kind) => {
      const file = fileURLToPath(new URL('./children/client.ts', import.meta.url))
      const args = ['--unhandled-rejections=strict', '--import', 'tsx', file, kind, freshFile()]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => {
        if (child.exitCode === null) child.kill('SIGKILL')
      })
      let output = ''
      let downAt = 0
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes('closed')) downAt ||= performance.now()
      })
      await once(child, 'close')
      expect([child.exitCode, output]).toEqual([0, 'closed'])
      expect(performance.now() - downAt).toBeLessThan(1_000)
    },
    30_000,
  )
})
