import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, onTestFinished } from 'vitest'
import { Engine, NonDeterminismError, RunFailedError, workflow } from '../../../src/index.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { freshFile } from '../engine/places.ts'
import { ended, notebook, refusal, until } from '../engine/support.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

async function launched<E extends Engine>(engine: E): Promise<E> {
  await ended(engine).launch()
  return engine
}

it('10,000 sleeping workflows are suspended and collected, and all wake when the clock passes', {
  timeout: 60_000,
}, async () => {
  const RUNS = 10_000
  const clock = new MockClock()
  let begun = 0
  let collected = 0
  let woken = 0
  const registry = new FinalizationRegistry(() => void collected++)
  const nap = workflow('nap', async (ctx) => {
    const held = { ctx }
    registry.register(held, undefined)
    await ctx.step('begin', () => void begun++)
    await ctx.sleep('1h')
    await ctx.step('wake', () => void (held.ctx === ctx && woken++))
  })
  const engine = await launched(new Engine({ store: memory({ clock }), definitions: [nap] }))
  await engine.startMany(
    nap,
    Array.from({ length: RUNS }, () => ({ input: undefined })),
  )
  await clock.advance('1m')
  let waiting = 0
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await engine.runs.list({
      status: 'WAITING',
      limit: 1_000,
      ...(cursor === undefined ? {} : { cursor }),
    })
    waiting += page.runs.length
    cursor = page.cursor
  }
  expect([begun, waiting, woken]).toEqual([RUNS, RUNS, 0])
  await until(() => {
    collectGarbage()
    return collected > RUNS * 0.99
  }, 'dropped passes are collected')
  await clock.advance('1h')
  expect([begun, woken]).toEqual([RUNS, RUNS])
})

it('a sleep of a second or less stays in memory; a longer one is suspended', async () => {
  const clock = new MockClock()
  let bodies = 0
  const nap = workflow('nap', async (ctx, ms: number) => {
    bodies += 1
    await ctx.sleep(ms)
  })
  const engine = await launched(new Engine({ store: memory({ clock }), definitions: [nap] }))
  const short = await engine.start(nap, 1_000)
  await clock.advance(10)
  expect(await short.status()).toBe('PENDING')
  const long = await engine.start(nap, 1_001)
  await clock.advance(10)
  expect(await long.status()).toBe('WAITING')
  await clock.advance(1_000)
  expect([await short.status(), await long.status(), bodies]).toEqual(['SUCCESS', 'SUCCESS', 3])
})

it('W28: a hand-over keeps the wake instant', async () => {
  const clock = new MockClock()
  const store = memory({ clock })
  const nap = workflow('nap', async (ctx) => {
    const before = await ctx.now()
    await ctx.sleep(900)
    await ctx.sleep('10s')
    return (await ctx.now()).getTime() - before.getTime()
  })
  const first = await launched(new Engine({ store, definitions: [nap] }))
  const { id } = await first.start(nap)
  await clock.advance(600)
  await first.shutdown({ timeout: 0 })
  await clock.advance(100)
  const second = await launched(new Engine({ store, definitions: [nap] }))
  await clock.advance('20s')
  expect(await second.handle(nap, id).result()).toBe(10_900)
})

it('a suspension is seen by neither catch nor finally, and a late call of a dropped pass only by the log', async () => {
  const clock = new MockClock()
  const seen: string[] = []
  let again = (): void => {}
  const nap = workflow('nap', async (ctx) => {
    again = () => void ctx.step('late', () => seen.push('late'))
    try {
      await ctx.sleep('1h')
      seen.push('awake')
    } catch {
      seen.push('catch')
    } finally {
      seen.push('finally')
    }
  })
  const logger = notebook()
  const engine = await launched(new Engine({ store: memory({ clock }), definitions: [nap], logger }))
  const run = await engine.start(nap)
  await clock.advance('1m')
  expect([await run.status(), seen]).toEqual(['WAITING', []])
  again()
  expect(logger.lines.find(({ fields }) => fields?.['call'] === "step 'late'")?.fields).toMatchObject({
    runId: run.id,
    site: expect.stringContaining('suspension.test.ts'),
  })
  await clock.advance('1h')
  expect([await run.status(), seen]).toEqual(['SUCCESS', ['awake', 'finally']])
})

it('ctx.log is silent on replayed lines', async () => {
  const clock = new MockClock()
  const logger = notebook()
  const nap = workflow('nap', async (ctx) => {
    ctx.log.info('before')
    await ctx.step('a', () => 1)
    ctx.log.info('between')
    await ctx.sleep('1h')
    ctx.log.info('after')
  })
  const engine = await launched(new Engine({ store: memory({ clock }), definitions: [nap], logger }))
  await engine.start(nap)
  await clock.advance('2h')
  const lines = logger.messages('info').filter((line) => ['before', 'between', 'after'].includes(line))
  expect(lines).toEqual(['before', 'between', 'after'])
})

it('W6: a run whose code has changed is DEAD, and goes on where it was when it is requeued after a fix', async () => {
  const clock = new MockClock()
  const store = memory({ clock })
  const effects: string[] = []
  const version = (name: string) =>
    workflow('order', async (ctx) => {
      await ctx.step(name, () => void effects.push(name))
      await ctx.sleep('1h')
      return ctx.step('ship', () => {
        effects.push('ship')
        return 'shipped'
      })
    })
  const [right, wrong] = [version('charge'), version('pay')]
  const first = await launched(new Engine({ store, definitions: [right] }))
  const { id } = await first.start(right)
  await clock.advance('1m')
  await first.shutdown({ timeout: 0 })
  const second = await launched(new Engine({ store, definitions: [wrong] }))
  await clock.advance('1h')
  const failure = await refusal(second.handle(wrong, id).result())
  expect(failure).toBeInstanceOf(RunFailedError)
  expect(failure).toMatchObject({ kind: 'nondeterminism', cause: expect.any(NonDeterminismError) })
  expect([await second.handle(id).status(), effects]).toEqual(['DEAD', ['charge']])
  await second.shutdown({ timeout: 0 })
  const third = await launched(new Engine({ store, definitions: [right] }))
  expect(await third.requeue(id)).toBe(true)
  expect(await third.handle(right, id).result()).toBe('shipped')
  expect(effects).toEqual(['charge', 'ship'])
})

it.each([
  ['memory', () => memory()],
  ['sqlite', () => sqlite(freshFile())],
])('10,000 sleeps of 0 to 2,000 ms under load on %s: no wake-up is lost', { timeout: 60_000 }, async (_, store) => {
  let woken = 0
  const naps = workflow('naps', async (ctx, ms: number) => {
    await ctx.sleep(ms)
    woken += 1
  })
  const engine = await launched(new Engine({ store: store(), definitions: [naps] }))
  const load = setInterval(() => {
    for (const end = performance.now() + 3; performance.now() < end; );
  }, 10)
  onTestFinished(() => clearInterval(load))
  const start = performance.now()
  const runs = await engine.startMany(
    naps,
    Array.from({ length: 10_000 }, (_, index) => ({ input: (index * 7919) % 2_001 })),
  )
  await Promise.all(runs.map((run) => run.result()))
  expect(woken).toBe(10_000)
  expect(performance.now() - start).toBeLessThan(15_000)
})
