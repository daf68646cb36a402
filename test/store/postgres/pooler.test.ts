/** Behind a pooler in transaction mode, where no two transactions can count on one session. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { Engine, queue, workflow } from '../../../src/index.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { emptySchema } from './databases.ts'
import { Pooler } from './pooler.ts'

describe('behind a pooler', () => {
  it('runs go through, limits hold, and wake-ups come by the way that is given for them', async () => {
    const { url, schema } = await emptySchema()
    const pooler = await Pooler.open(url)
    let [running, most] = [0, 0]
    const count = workflow('count', async (ctx, n: number) => {
      const once = await ctx.step('once', async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 2))
        running -= 1
        return n
      })
      return once + (await ctx.step('again', async () => 1))
    })
    const store = postgres(pooler.url, { schema, prepare: false, listenUrl: url })
    const engine = new Engine({ store, definitions: [count], queues: [queue('narrow', { globalConcurrency: 3 })] })
    onTestFinished(() => engine.shutdown())
    await engine.launch()
    const items = Array.from({ length: 40 }, (_, input) => ({ input, options: { queue: 'narrow' } }))
    const runs = await engine.startMany(count, items)
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(items.map(({ input }) => input + 1))
    expect(most).toBeLessThanOrEqual(3)
    expect(pooler.transactions).toBeGreaterThan(20)
  })
})
