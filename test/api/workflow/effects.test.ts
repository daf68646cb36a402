/** What steps stage, through engines: made together with the record of the step, or not at all. */
import { expect, it } from 'vitest'
import { Engine, queue, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { ended, notebook } from '../engine/support.ts'

const greet = workflow('greet', async (_ctx, name: string) => `hello ${name}`)

it('Q38: values, follow-ups and signals come with the success of a step', async () => {
  const clock = new MockClock()
  const listener = workflow('listener', async (ctx) => ctx.waitForSignal<string>('done'))
  const work = workflow('work', async (ctx) => {
    const attempts: number[] = []
    const id = await ctx.step('work', { maxAttempts: 3 }, async ({ attempt, effects }) => {
      attempts.push(attempt)
      effects.put('total', { attempt, at: new Date(attempt) })
      effects.delete('draft')
      effects.sendSignal('done', `by attempt ${attempt}`)
      const started = await effects.start(greet, `attempt ${attempt}`)
      if (attempt < 3) throw new Error('again')
      return started
    })
    await ctx.sleep('1h')
    return { id, attempts }
  })
  const engine = ended(new Engine({ store: memory({ clock }), definitions: [greet, listener, work], logger: silent }))
  await engine.launch()
  await engine.kv.put('draft', 1)
  const heard = await engine.start(listener)
  await clock.advance(1)
  const run = await engine.start(work, undefined, { id: 'w' })
  await clock.advance('1m')
  expect(await engine.kv.get('total')).toEqual({ attempt: 3, at: new Date(3) })
  expect(await engine.kv.get('draft')).toBeUndefined()
  expect(await heard.result()).toEqual({ ok: true, payload: 'by attempt 3' })
  expect(await engine.handle('w~0.0.0').result()).toBe('hello attempt 3')
  await engine.kv.delete('total')
  await clock.advance('2h')
  // Replayed, the step is not run again, and neither are its effects.
  expect([await run.result(), await engine.kv.get('total')]).toMatchObject([{ id: 'w~0.0.0' }, undefined])
  expect((await engine.runs.list({ definition: 'greet' })).runs).toHaveLength(1)
})

it('a follow-up does not care what becomes of the run that started it', async () => {
  const clock = new MockClock()
  const slow = workflow('slow', async (ctx) => {
    await ctx.sleep('1h')
    return 'done'
  })
  const work = workflow('work', async (ctx) => {
    await ctx.step('start', ({ effects }) => effects.start(slow))
    await ctx.sleep('1h')
  })
  const engine = ended(new Engine({ store: memory({ clock }), definitions: [slow, work], logger: silent }))
  await engine.launch()
  const run = await engine.start(work, undefined, { id: 'w' })
  await clock.advance('1m')
  expect(await run.cancel()).toBe(true)
  await clock.advance('2h')
  expect(await engine.handle('w~0.0.0').result()).toBe('done')
})

it('Q38: a follow-up that the store refuses is left out alone, and told of', async () => {
  const clock = new MockClock()
  const logger = notebook()
  const work = workflow('work', async (ctx) =>
    ctx.step('start', async ({ effects }) => {
      effects.put('kept', true)
      return [await effects.start(greet, 'another', { id: 'known' }), await effects.start(greet, 'you')]
    }),
  )
  const engine = ended(new Engine({ store: memory({ clock }), definitions: [greet, work], logger }))
  await engine.launch()
  await engine.start(greet, 'me', { id: 'known' })
  const run = await engine.start(work, undefined, { id: 'w' })
  await clock.advance('1m')
  expect(await run.result()).toEqual(['known', 'w~0.0.1'])
  expect(await engine.kv.get('kept')).toBe(true)
  expect([await engine.handle('known').result(), await engine.handle('w~0.0.1').result()]).toEqual([
    'hello me',
    'hello you',
  ])
  expect(logger.lines.filter(({ level, fields }) => level === 'warn' && fields?.['runId'] === 'w')).toHaveLength(1)
})

it('a follow-up can not stand for another run, as its id is told before anybody knows which', async () => {
  const caught = workflow('caught', async (ctx) => {
    const options = { queue: 'q', dedupId: 'd', dedupPolicy: 'returnExisting' } as const
    const step = ctx.step('start', ({ effects }) => effects.start(greet, 'Ada', options))
    return step.then(String, (error: Error) => error.message)
  })
  const store = memory({ clock: new MockClock() })
  const engine = ended(new Engine({ store, definitions: [greet, caught], queues: [queue('q')], logger: silent }))
  await engine.launch()
  const message = await (await engine.start(caught)).result()
  expect(message).toContain("dedupPolicy: 'reject', or ctx.start outside of the step")
  expect((await engine.runs.list({ definition: 'greet' })).runs).toEqual([])
})
