/** Cancelling a run in every status, and the timeout of a run. */
import { describe, expect, it } from 'vitest'
import { Engine, RunCancelledError, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, Tally, until } from './support.ts'

const logger = silent

/** Resolves when the signal is aborted, as a step that heeds it does. */
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve())
  })

describe.each(KINDS)('cancel on $kind', ({ place }) => {
  it('W16 W37 a run that does not run ends at once: ENQUEUED, WAITING', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    const queued = await engine.start(nap)
    expect(await queued.status()).toBe('ENQUEUED')
    expect(await queued.cancel()).toBe(true)
    expect(await queued.status()).toBe('CANCELLED')
    expect(await queued.cancel()).toBe(false)
    await engine.launch()
    const waiting = await engine.start(nap)
    await clock.advance('1m')
    expect(await waiting.status()).toBe('WAITING')
    const result = refusal(waiting.result())
    expect(await waiting.cancel()).toBe(true)
    expect(await waiting.status()).toBe('CANCELLED')
    expect(await result).toMatchObject({ code: 'RUN_CANCELLED', reason: 'cancelled' })
    await clock.advance('2h')
    expect(await waiting.status()).toBe('CANCELLED')
    expect(await engine.cancel(waiting.id)).toBe(false)
    expect((await engine.runs.get(waiting.id))?.failureKind).toBe('cancelled')
  })

  it('F-15 W37 a step that heeds its signal ends the run; its error and its output count for nothing', async () => {
    const tally = new Tally()
    const entered = door()
    const held = workflow('held', async (ctx, how: 'throw' | 'return') => {
      try {
        await ctx.step('wait', { maxAttempts: 5 }, async ({ signal }) => {
          tally.add('entered')
          entered.open()
          await aborted(signal)
          if (how === 'throw') throw new Error('stopped')
          return 'done'
        })
      } finally {
        tally.add('body went on')
      }
      await ctx.step('after', () => tally.add('after'))
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [held], logger }))
    await engine.launch()
    for (const how of ['throw', 'return'] as const) {
      const run = await engine.start(held, how)
      await entered.opened
      await until(() => tally.of('entered') === (how === 'throw' ? 1 : 2))
      expect(await run.cancel()).toBe(true)
      expect(await run.cancel()).toBe(false)
      expect(await refusal(run.result())).toBeInstanceOf(RunCancelledError)
      expect(await engine.runs.steps(run.id)).toEqual([])
    }
    expect(tally.all).toEqual({ entered: 2 })
  })

  it('a step that ignores its signal keeps the claim until it has ended', async () => {
    const tally = new Tally()
    const entered = door()
    const leave = door()
    const stubborn = workflow('stubborn', async (ctx) => {
      await ctx.step('wait', async () => {
        entered.open()
        await leave.opened
      })
      tally.add('body went on')
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [stubborn], logger }))
    await engine.launch()
    const run = await engine.start(stubborn)
    await entered.opened
    expect(await run.cancel()).toBe(true)
    expect(await run.status()).toBe('PENDING')
    expect((await engine.runs.get(run.id))?.cancelRequested).toBe(true)
    leave.open()
    expect(await refusal(run.result())).toBeInstanceOf(RunCancelledError)
    expect(tally.all).toEqual({})
  })

  it('a body that waits for nothing but itself is cancelled at its next durable call', async () => {
    const entered = door()
    const go = door()
    const tally = new Tally()
    const busy = workflow('busy', async (ctx) => {
      await ctx.step('first', () => {})
      entered.open()
      await go.opened
      await ctx.step('second', () => tally.add('second'))
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [busy], logger }))
    await engine.launch()
    const run = await engine.start(busy)
    await entered.opened
    expect(await run.cancel()).toBe(true)
    go.open()
    expect(await refusal(run.result())).toBeInstanceOf(RunCancelledError)
    expect(tally.all).toEqual({})
  })

  it('another engine on the same data notices the request fast', async () => {
    const home = place()
    const entered = door()
    const held = workflow('held', async (ctx) => {
      await ctx.step('wait', async ({ signal }) => {
        entered.open()
        await aborted(signal)
      })
    })
    const worker = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    const other = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    await worker.launch()
    const run = await worker.start(held)
    await entered.opened
    const start = performance.now()
    expect(await other.cancel(run.id)).toBe(true)
    expect(await refusal(other.handle(run.id).result())).toBeInstanceOf(RunCancelledError)
    expect(performance.now() - start).toBeLessThan(2_000)
  })

  it('W16 a hundred cancels race a hundred ends: each run ends one way, told the same to all', async () => {
    const tally = new Tally()
    const quick = workflow('quick', async (ctx, n: number) => {
      await ctx.step('one', () => tally.add(ctx.runId))
      return n
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [quick], logger }))
    await engine.launch()
    const runs = await Promise.all(Array.from({ length: 100 }, (_, n) => engine.start(quick, n)))
    const outcomes = await Promise.all(
      runs.map(async (run, n) => {
        for (let turn = 0; turn < n % 7; turn += 1) await new Promise(setImmediate)
        const accepted = await run.cancel()
        const result = await run.result().then(
          () => 'SUCCESS',
          (error: unknown) => (error instanceof RunCancelledError ? 'CANCELLED' : String(error)),
        )
        return { accepted, result, status: await run.status() }
      }),
    )
    for (const { accepted, result, status } of outcomes) {
      expect(result).toBe(accepted ? 'CANCELLED' : 'SUCCESS')
      expect(status).toBe(result)
    }
    for (const run of runs) expect(tally.of(run.id)).toBeLessThanOrEqual(1)
  })

  it('ended runs stay as they are', async () => {
    const done = workflow('done', async () => 'done')
    const failed = workflow('failed', async () => {
      throw new Error('failed')
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [done, failed], logger }))
    await engine.launch()
    const one = await engine.start(done)
    const two = await engine.start(failed)
    await one.result()
    await refusal(two.result())
    expect([await one.cancel(), await two.cancel()]).toEqual([false, false])
    expect([await one.status(), await two.status()]).toEqual(['SUCCESS', 'ERROR'])
  })
})

describe.each(KINDS)('timeout of a run on $kind', ({ place }) => {
  it('W21 ends a sleeping run CANCELLED at its deadline, not before', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', { timeout: '1h' }, async (ctx) => ctx.sleep('1d'))
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    const run = await engine.start(nap)
    // Before its first claim no time is spent.
    await clock.advance('5h')
    expect(await run.status()).toBe('ENQUEUED')
    await engine.launch()
    await clock.advance('59m')
    expect(await run.status()).toBe('WAITING')
    await clock.advance('2m')
    expect(await run.status()).toBe('CANCELLED')
    expect(await refusal(run.result())).toMatchObject({ code: 'RUN_CANCELLED', reason: 'timeout' })
    const record = await engine.runs.get(run.id)
    expect(record?.failureKind).toBe('timeout')
    expect((record?.endedAt?.getTime() ?? 0) - (record?.deadline?.getTime() ?? 0)).toBe(0)
  })

  it('a start may set its own; a fraction and a huge one are fine', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', { timeout: '1h' }, async (ctx) => ctx.sleep('10m'))
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    await engine.launch()
    const short = await engine.start(nap, undefined, { timeout: '1m' })
    const fraction = await engine.start(nap, undefined, { timeout: 60_000.5 })
    const huge = await engine.start(nap, undefined, { timeout: Number.MAX_SAFE_INTEGER })
    await clock.advance('2m')
    expect([await short.status(), await fraction.status()]).toEqual(['CANCELLED', 'CANCELLED'])
    await clock.advance('10m')
    expect(await huge.status()).toBe('SUCCESS')
    expect((await engine.runs.get(huge.id))?.status).toBe('SUCCESS')
  })

  it('W21 is kept across a crash, and cleared by a requeue', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const nap = workflow('nap', { timeout: '10m' }, async (ctx) => ctx.step('hang', ({ signal }) => aborted(signal)))
    const first = home.connect()
    const crashed = ended(new Engine({ store: first, definitions: [nap], logger }))
    await crashed.launch()
    const run = await crashed.start(nap, undefined, { id: 't' })
    await until(async () => (await crashed.runs.get('t'))?.deadline !== undefined)
    const deadline = (await crashed.runs.get(run.id))?.deadline
    first.die()
    const engine = ended(new Engine({ store: home.connect(), definitions: [nap], logger }))
    await engine.launch()
    await clock.advance('5m')
    expect(await engine.runs.get('t')).toMatchObject({ status: 'PENDING', deadline, crashes: 1 })
    await clock.advance('5m')
    await until(async () => (await engine.handle('t').status()) === 'CANCELLED')
    expect(await engine.requeue('t')).toBe(true)
    await clock.advance('1m')
    const again = await engine.runs.get('t')
    expect(again).toMatchObject({ status: 'PENDING', epoch: 1, attempt: 1, crashes: 0 })
    expect(again?.deadline?.getTime()).toBeGreaterThan(deadline?.getTime() ?? 0)
  })

  it('a step that ignores its signal does not hold the run up for ever', async () => {
    const clock = new MockClock()
    const tally = new Tally()
    const entered = door()
    const leave = door()
    const stubborn = workflow('stubborn', { timeout: '1m' }, async (ctx) => {
      await ctx.step('hang', async () => {
        entered.open()
        await leave.opened
      })
      tally.add('body went on')
    })
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [stubborn], logger }))
    await engine.launch()
    const run = await engine.start(stubborn)
    await entered.opened
    await clock.advance('2m')
    // The grace is in real time.
    expect(await refusal(run.result({ timeout: '8s' }))).toMatchObject({ reason: 'timeout' })
    leave.open()
    await new Promise(setImmediate)
    expect(tally.all).toEqual({})
  })
})
