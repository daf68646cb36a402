/** Q45: ended runs are kept as long as their definition, or else their queue, says, by how they ended. */
import { describe, expect, it } from 'vitest'
import { Engine, queue, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { ended, refusal } from './support.ts'

const logger = silent

describe.each(KINDS)('retention on $kind', ({ place }) => {
  it('by definition and by how a run ended; unset is for ever', async () => {
    const clock = new MockClock()
    const brief = workflow('brief', { retention: { success: '1h', error: '2h' } }, async (ctx, fail: boolean) => {
      await ctx.step('s', () => 1)
      if (fail) throw new Error('no')
      return 1
    })
    const kept = workflow('kept', async (_ctx, n: number) => n)
    const forever = workflow('forever', { retention: 'forever' }, async (_ctx, n: number) => n)
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [brief, kept, forever], logger }))
    await engine.launch()
    const success = await engine.start(brief, false, { id: 'same' })
    const error = await engine.start(brief, true)
    const others = [await engine.start(kept, 1), await engine.start(forever, 1)]
    await Promise.all([success, ...others].map((run) => run.result()))
    await refusal(error.result())
    await clock.advance('1h')
    // Kept to the last millisecond.
    expect(await success.status()).toBe('SUCCESS')
    await clock.advance(1)
    expect(await engine.runs.get('same')).toBeUndefined()
    expect(await success.fetchResult()).toBeUndefined()
    expect(await refusal(success.result())).toMatchObject({ code: 'RUN_NOT_FOUND', runId: 'same' })
    expect([await engine.runs.steps('same'), await engine.runs.attempts('same')]).toEqual([[], []])
    expect(await error.status()).toBe('ERROR')
    await clock.advance('1h')
    expect(await engine.runs.get(error.id)).toBeUndefined()
    await clock.advance('365d')
    for (const run of others) expect(await run.result()).toBe(1)
    // J6: the id starts a run again.
    const again = await engine.start(brief, false, { id: 'same' })
    expect([again.newlySubmitted, await again.result()]).toEqual([true, 1])
  })

  it('by queue, where the definition says nothing; what has not ended is never removed', async () => {
    const clock = new MockClock()
    const echo = workflow('echo', async (_ctx, n: number) => n)
    const own = workflow('own', { retention: { success: '3h' } }, async (_ctx, n: number) => n)
    const nap = workflow('nap', async (ctx) => ctx.sleep('10d'))
    const queues = [queue('media', { retention: { success: '1h', cancelled: '1h' } })]
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [echo, own, nap], queues, logger }))
    await engine.launch()
    const on = { queue: 'media' } as const
    const [plain, other] = [await engine.start(echo, 1, on), await engine.start(own, 1, on)]
    const elsewhere = await engine.start(echo, 1)
    const sleeping = await engine.start(nap, undefined, on)
    const delayed = await engine.start(echo, 1, { ...on, delay: '30d' })
    const cancelled = await engine.start(echo, 1, { ...on, delay: '30d' })
    await Promise.all([plain, other, elsewhere].map((run) => run.result()))
    await cancelled.cancel()
    await clock.advance(3_600_001)
    const there = async (): Promise<string[]> => {
      const runs = { plain, other, elsewhere, sleeping, delayed, cancelled }
      const found = await Promise.all(
        Object.entries(runs).map(async ([name, { id }]) => ((await engine.runs.get(id)) === undefined ? [] : [name])),
      )
      return found.flat()
    }
    expect(await there()).toEqual(['other', 'elsewhere', 'sleeping', 'delayed'])
    await clock.advance('2h')
    expect(await there()).toEqual(['elsewhere', 'sleeping', 'delayed'])
    await clock.advance('9d')
    expect([await sleeping.status(), await delayed.status()]).toEqual(['WAITING', 'DELAYED'])
  })

  it('many at once go in bounded sweeps', async () => {
    const clock = new MockClock()
    const echo = workflow('echo', { retention: { success: '1h' } }, async (_ctx, n: number) => n)
    const store = place(clock).connect()
    const engine = ended(new Engine({ store, definitions: [echo], logger }))
    await engine.launch()
    const runs = await engine.startMany(
      echo,
      Array.from({ length: 450 }, (_, input) => ({ input })),
    )
    await Promise.all(runs.map((run) => run.result()))
    const sweeps = store.calls('sweep')
    await clock.advance('61m')
    expect((await engine.runs.list()).runs).toEqual([])
    expect(store.calls('sweep') - sweeps).toBeGreaterThanOrEqual(3)
  })
})
