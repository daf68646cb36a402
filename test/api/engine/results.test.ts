/** Handles: results awaited before, during and after the end, by many, from other engines, with time-outs. */
import { describe, expect, it } from 'vitest'
import {
  Engine,
  RunCancelledError,
  RunFailedError,
  RunNotFoundError,
  TimeoutError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal } from './support.ts'

const logger = silent

describe.each(KINDS)('results on $kind', ({ kind, place }) => {
  const echo = workflow('echo', async (_ctx, value: unknown) => value)
  const fail = workflow('fail', async (_ctx, message: string) => {
    throw new RangeError(message)
  })

  it('a handle is not thenable, and looks at its run', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    await engine.launch()
    const run = await engine.start(echo, 'x', { id: 'r' })
    expect('then' in run).toBe(false)
    expect(await run.result()).toBe('x')
    expect(await run.status()).toBe('SUCCESS')
    expect(await run.fetchResult()).toEqual({ ok: true, output: 'x' })
    const again = engine.handle(echo, 'r')
    expect([again.id, again.newlySubmitted]).toEqual(['r', false])
    expect(await Promise.all([again.result(), again.result(), again.fetchResult()])).toEqual([
      'x',
      'x',
      { ok: true, output: 'x' },
    ])
  })

  it('failures and cancellations are told apart', async () => {
    const engine = ended(
      new Engine({ store: place().connect(), definitions: [echo, fail], errors: [RangeError], logger }),
    )
    await engine.launch()
    const run = await engine.start(fail, 'too much', { id: 'f' })
    const error = await refusal(run.result())
    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toMatchObject({ runId: 'f', kind: 'error', attempts: 1, reason: 'too much' })
    expect(error instanceof Error && error.cause).toBeInstanceOf(RangeError)
    const fetched = await run.fetchResult()
    expect(fetched).toMatchObject({ ok: false, error: { code: 'RUN_FAILED', cause: { message: 'too much' } } })

    const idle = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    const cancelled = await idle.start(echo, 1, { id: 'c' })
    expect(await cancelled.fetchResult()).toBeUndefined()
    expect(await cancelled.cancel()).toBe(true)
    expect(await refusal(cancelled.result())).toBeInstanceOf(RunCancelledError)
    expect(await cancelled.fetchResult()).toMatchObject({
      ok: false,
      error: { code: 'RUN_CANCELLED', reason: 'cancelled' },
    })
  })

  it('a run that does not exist is not found', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    const run = engine.handle(echo, 'nowhere')
    expect(await refusal(run.result())).toBeInstanceOf(RunNotFoundError)
    expect(await refusal(run.result({ timeout: '1m' }))).toBeInstanceOf(RunNotFoundError)
    expect(await refusal(run.status())).toBeInstanceOf(RunNotFoundError)
    expect(await run.fetchResult()).toBeUndefined()
    expect(await run.cancel()).toBe(false)
    expect(await engine.requeue('nowhere')).toBe(false)
    expect(await engine.runs.get('nowhere')).toBeUndefined()
    expect(await engine.runs.steps('nowhere')).toEqual([])
    expect(await engine.runs.attempts('nowhere')).toEqual([])
  })

  it('a time-out ends the wait, not the run, and leaves nothing waiting', async () => {
    const opened = door()
    const gated = workflow('gated', async () => opened.opened)
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [gated], logger }))
    await engine.launch()
    const run = await engine.start(gated)
    expect(await refusal(run.result({ timeout: 5 }))).toBeInstanceOf(TimeoutError)
    expect(await refusal(run.result({ timeout: 0 }))).toMatchObject({ runId: run.id, timeoutMs: 0 })
    expect(await run.status()).toBe('PENDING')
    opened.open()
    await run.result({ timeout: '1m' })
  })

  it('F-12 10,000 waits before, during and after the end cost one query a round', async () => {
    const opened = door()
    const gated = workflow('gated', async (_ctx, n: number) => {
      await opened.opened
      return n
    })
    const home = place()
    const store = home.connect()
    const engine = ended(new Engine({ store, definitions: [gated], logger }))
    const numbers = Array.from({ length: 1_000 }, (_, n) => n)
    const runs = await engine.startMany(
      gated,
      numbers.map((n) => ({ input: n })),
    )
    const waits = runs.flatMap((run) => Array.from({ length: 10 }, () => run.result()))
    const before = store.calls('endings')
    await engine.launch()
    opened.open()
    expect(await Promise.all(waits)).toEqual(numbers.flatMap((n) => Array(10).fill(n)))
    const after = runs.map((run) => run.result())
    expect(await Promise.all(after)).toEqual(numbers)
    expect(before).toBeLessThanOrEqual(1)
    expect(store.calls('endings')).toBeLessThan(kind === 'memory' ? 6 : 20)
  })

  it('another engine on the same data sees the end soon', async () => {
    const home = place()
    const worker = ended(new Engine({ store: home.connect(), definitions: [echo, fail], logger }))
    await worker.launch()
    const watcher = ended(new Engine({ store: home.connect(), definitions: [echo, fail], logger }))
    const run = await watcher.start(echo, { n: 1 }, { id: 'e' })
    expect(await run.result({ timeout: '5s' })).toEqual({ n: 1 })
    for (let wait = 0; wait < 50; wait += 1) expect(await run.result({ timeout: 0 })).toEqual({ n: 1 })
    const failed = await watcher.start(fail, 'no')
    expect(await refusal(failed.result({ timeout: '5s' }))).toMatchObject({ kind: 'error' })
    expect(await worker.handle('e').result()).toEqual({ n: 1 })
  })

  it('a result outlives a requeue: it is the one of the last epoch', async () => {
    let attempts = 0
    const flaky = workflow('flaky', async () => {
      attempts += 1
      if (attempts === 1) throw new Error('first')
      return 'second'
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [flaky], logger }))
    await engine.launch()
    const run = await engine.start(flaky)
    await refusal(run.result())
    expect(await engine.requeue(run.id)).toBe(true)
    expect(await run.result()).toBe('second')
    expect(await run.fetchResult()).toEqual({ ok: true, output: 'second' })
  })
})
