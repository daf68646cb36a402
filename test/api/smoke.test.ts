import { expect, it } from 'vitest'
import { Engine, workflow } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'

it('runs a three-step workflow', async () => {
  const hello = workflow('hello', async (ctx, name: string) => {
    const a = await ctx.step('a', async () => `${name}-a`)
    const [b, c] = await Promise.all([ctx.step('b', async () => `${a}b`), ctx.step('c', async () => `${a}c`)])
    return { b, c, id: ctx.uuid(), at: await ctx.now() }
  })
  const engine = new Engine({ store: memory(), definitions: [hello] })
  await engine.launch()
  const run = await engine.start(hello, 'x')
  console.log(await run.result(), await engine.runs.steps(run.id), await engine.runs.attempts(run.id), await engine.runs.get(run.id))
  await engine.shutdown()
})

it('sleeps', async () => {
  const clock = new MockClock()
  const nap = workflow('nap', async (ctx) => {
    const before = await ctx.now()
    await ctx.sleep('1d')
    return (await ctx.now()).getTime() - before.getTime()
  })
  const engine = new Engine({ store: memory({ clock }), definitions: [nap] })
  await engine.launch()
  const run = await engine.start(nap)
  await clock.advance('1h')
  expect(await run.status()).toBe('WAITING')
  await clock.advance('1d')
  expect(await run.result()).toBe(86_400_000)
  await engine.shutdown()
})
