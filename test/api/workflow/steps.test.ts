import { expect, it } from 'vitest'
import {
  Engine,
  NestedDurableCallError,
  RunCancelledError,
  SerializationError,
  StepTimeoutError,
  type WorkflowContext,
  workflow,
} from '../../../src/index.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { door, ended, notebook, refusal, until } from '../engine/support.ts'

class Declined extends Error {
  override readonly name = 'Declined'
  readonly reason: string
  constructor(reason: string) {
    super(`declined: ${reason}`, { cause: new Error('the bank') })
    this.reason = reason
  }
}

type Body = (ctx: WorkflowContext<unknown>) => Promise<unknown>

/** Starts a workflow on a mock clock. */
async function stage(body: Body, options: { readonly errors?: readonly (typeof Declined)[] } = {}) {
  const clock = new MockClock()
  const flow = workflow('flow', body)
  const logger = notebook()
  const engine = ended(new Engine({ store: memory({ clock }), definitions: [flow], logger, ...options }))
  await engine.launch()
  return { clock, logger, engine, run: await engine.start(flow) }
}

/** The values that a body gives on its first pass and on the replay after a sleep. */
async function bothPasses(
  look: Body,
  options: { readonly errors?: readonly (typeof Declined)[] } = {},
): Promise<unknown[]> {
  const seen: unknown[] = []
  const { clock, run } = await stage(async (ctx) => {
    seen.push(await look(ctx))
    await ctx.sleep('1h')
  }, options)
  await clock.advance('2h')
  expect(await run.status()).toBe('SUCCESS')
  expect(seen).toHaveLength(2)
  return seen
}

it('W3: retries back off from 100 ms, doubling to 5 s, and only the end is recorded', async () => {
  const at: number[] = []
  const { clock, engine, run } = await stage(async (ctx) =>
    ctx.step('flaky', { maxAttempts: 9 }, ({ attempt }) => {
      at.push(clock.now())
      if (attempt < 9) throw new Error('no')
      return attempt
    }),
  )
  await clock.advance('1m')
  expect(await run.result()).toBe(9)
  const pauses = at.slice(1).map((instant, index) => instant - (at[index] ?? 0))
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(await engine.runs.steps(run.id)).toMatchObject([{ name: 'flaky', attempts: 9, status: 'SUCCESS' }])
})

it('W3: by default a step has one attempt; retryIf ends them early, and its own throw is what went wrong', async () => {
  let runs = 0
  const fail = (): never => {
    runs += 1
    throw new Error(`failure ${runs}`)
  }
  const { run } = await stage(async (ctx) => {
    const errors: string[] = []
    const note = (error: unknown): void => void errors.push(String(error))
    await ctx.step('once', fail).catch(note)
    await ctx.step('stop', { maxAttempts: 5, retryIf: () => false }, fail).catch(note)
    const retryIf = (): boolean => {
      throw new Error('broken predicate')
    }
    await ctx.step('broken', { maxAttempts: 5, retryIf }, fail).catch(note)
    return errors
  })
  expect(await run.result()).toEqual(['Error: failure 1', 'Error: failure 2', 'Error: broken predicate'])
  expect(runs).toBe(3)
})

it('W2, A-06, A-07, G-10: a failed step stays failed, with the same error on both passes', async () => {
  let runs = 0
  const seen = await bothPasses(
    (ctx) =>
      ctx
        .step('charge', { maxAttempts: 1 }, () => {
          runs += 1
          throw new AggregateError([new Declined('limit')], 'all failed')
        })
        .catch((error: unknown) => error),
    { errors: [Declined] },
  )
  expect(runs).toBe(1)
  for (const error of seen) {
    expect(error).toBeInstanceOf(AggregateError)
    const [inner] = error instanceof AggregateError ? error.errors : []
    expect(inner).toBeInstanceOf(Declined)
    expect(inner).toMatchObject({
      name: 'Declined',
      message: 'declined: limit',
      reason: 'limit',
      cause: { message: 'the bank' },
    })
  }
  expect(seen[0]).toEqual(seen[1])
})

it('A-14: whatever a step throws is recorded', async () => {
  const thrown = ['text', 42, null, { a: 1 }, undefined]
  const seen = await bothPasses((ctx) =>
    Promise.all(
      thrown.map((value) =>
        ctx
          .step('throw', () => {
            throw value
          })
          .catch((error: unknown) => error),
      ),
    ),
  )
  expect(seen).toEqual([thrown, thrown])
})

it('A-05: a step gives the same value on both passes', async () => {
  const value = { date: new Date(5), map: new Map([[1, { a: undefined }]]), set: new Set(['x']), missing: undefined }
  const seen = await bothPasses((ctx) => ctx.step('value', () => value))
  expect(seen).toStrictEqual([value, value])
  expect(seen[0]).not.toBe(value)
})

it('A-08: a value that cannot be stored fails its step, catchably, without a retry', async () => {
  let runs = 0
  const { run } = await stage(async (ctx) => {
    const error = await ctx
      .step('function', { maxAttempts: 3 }, () => {
        runs += 1
        return { deep: [() => {}] }
      })
      .catch((caught: unknown) => caught)
    return [error instanceof SerializationError, String(error), await ctx.step('next', () => 'goes on')]
  })
  expect(await run.result()).toEqual([true, expect.stringContaining('deep'), 'goes on'])
  expect(runs).toBe(1)
})

it('A-10: `this` of a step is none of its business', async () => {
  const holder = { socket: () => {}, work: (n: number): number => n + 1 }
  const { run } = await stage((ctx) => ctx.step('call', () => holder.work(1)))
  expect(await run.result()).toBe(2)
})

it('F-11: a failed step that was handled is handled on every pass', async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', listen)
  const seen = await bothPasses(async (ctx) => {
    void ctx.step('dropped', () => Promise.reject(new Error('dropped')))
    const [end] = await Promise.allSettled([ctx.step('failing', () => Promise.reject(new Error('no')))])
    return end?.status
  })
  process.off('unhandledRejection', listen)
  expect([seen, unhandled]).toEqual([['rejected', 'rejected'], []])
})

it('a step that throws before it returns a promise fails like any other', async () => {
  const { run } = await stage((ctx) =>
    ctx.step('sync', () => {
      throw new TypeError('at once')
    }),
  )
  expect(await refusal(run.result())).toMatchObject({ kind: 'error', cause: { name: 'TypeError', message: 'at once' } })
})

it('G-11, W8: a durable call inside a step is refused at once, also after an await, also when nobody awaits it', async () => {
  const caught: unknown[] = []
  const { run, engine } = await stage(async (ctx) => {
    const inside = async (call: () => Promise<unknown>): Promise<void> => {
      try {
        await call()
      } catch (error) {
        caught.push(error)
      }
    }
    await ctx.step('outer', async () => {
      await inside(() => ctx.sleep('1h'))
      await new Promise((resolve) => setTimeout(resolve, 1))
      await inside(() => ctx.step('inner', () => 1))
      void inside(() => ctx.now())
    })
    return ctx.step('next', (step) => step.idempotencyKey)
  })
  expect(await run.result()).toBe(`${run.id}:1`)
  expect(caught).toHaveLength(3)
  for (const error of caught) expect(error).toBeInstanceOf(NestedDurableCallError)
  expect(await engine.runs.steps(run.id)).toHaveLength(2)
})

it('a timeout aborts the signal, fails the attempt, and the next waits for the old body', async () => {
  const old = door()
  const begun: number[] = []
  const reasons: unknown[] = []
  const { clock, run } = await stage((ctx) =>
    ctx.step('slow', { timeout: '1s', maxAttempts: 2 }, async ({ attempt, signal }) => {
      begun.push(attempt)
      if (attempt === 2) return 'second'
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      await old.opened
      return 'too late'
    }),
  )
  await clock.advance('2s')
  expect(reasons).toEqual([expect.any(StepTimeoutError)])
  expect(begun).toEqual([1])
  old.open()
  expect(await run.result()).toBe('second')
  expect(begun).toEqual([1, 2])
})

it('the last timeout of a step is what it fails with; a body that never settles holds a retry for 5 s', async () => {
  const start = performance.now()
  let begun = 0
  const { clock, run } = await stage((ctx) =>
    ctx.step('stuck', { timeout: 100, maxAttempts: 2 }, () => {
      begun += 1
      return new Promise(() => {})
    }),
  )
  await clock.advance('1s')
  expect(begun).toBe(1)
  await until(() => begun === 2)
  expect(performance.now() - start).toBeGreaterThan(4_500)
  await clock.advance('1s')
  expect(await refusal(run.result())).toMatchObject({ cause: { code: 'STEP_TIMEOUT', step: 'stuck' } })
})

it('a cancellation aborts the signal, and the body does not go on', async () => {
  const began = door()
  const seen: unknown[] = []
  const { run } = await stage(async (ctx) => {
    await ctx.step('long', async ({ signal }) => {
      began.open()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      seen.push(signal.reason)
    })
    seen.push('went on')
  })
  await began.opened
  expect(await run.cancel()).toBe(true)
  expect(await refusal(run.result())).toBeInstanceOf(RunCancelledError)
  expect(seen).toEqual([expect.any(RunCancelledError)])
})

it('when the body ends, running steps are aborted, the run settles at once, and late outcomes are discarded with an event', async () => {
  const late = door()
  const aborted = door()
  const { engine, logger, run } = await stage(async (ctx) => {
    void ctx.step('loser', async ({ signal }) => {
      signal.addEventListener('abort', () => aborted.open())
      await late.opened
    })
    return ctx.step('winner', () => 'won')
  })
  expect(await run.result()).toBe('won')
  await aborted.opened
  late.open()
  await until(() => logger.lines.some(({ fields }) => fields?.['step'] === 'loser'), 'the event')
  expect((await engine.runs.steps(run.id)).map(({ name }) => name)).toEqual(['winner'])
})

it('20 parallel steps with signals: unique stable keys, no warnings', async () => {
  const warnings: unknown[] = []
  const listen = (warning: unknown): void => void warnings.push(warning)
  process.on('warning', listen)
  const keys: string[][] = []
  const { run } = await stage((ctx) =>
    Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        ctx.step(
          'same',
          { maxAttempts: 2, backoff: { base: 0 }, timeout: '1m' },
          ({ idempotencyKey, attempt, signal }) => {
            keys[index] = [...(keys[index] ?? []), idempotencyKey]
            signal.addEventListener('abort', () => {})
            if (attempt === 1) throw new Error('again')
          },
        ),
      ),
    ),
  )
  await run.result()
  process.off('warning', listen)
  expect(keys).toEqual(keys.map((_, index) => [`${run.id}:${index}`, `${run.id}:${index}`]))
  expect([keys.length, warnings]).toEqual([20, []])
})

it('W11: now is recorded, uuid and random are derived: the same on both passes, and different from each other', async () => {
  const [first, second] = await bothPasses(async (ctx) => [
    await ctx.now(),
    ctx.uuid(),
    ctx.uuid(),
    ctx.random(),
    ctx.random(),
  ])
  expect(second).toEqual(first)
  expect(new Set(Array.isArray(first) ? first : []).size).toBe(5)
})
