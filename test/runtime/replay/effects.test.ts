import { expect, it } from 'vitest'
import type { StepEffects } from '../../../src/api/context.ts'
import { ConfigurationError, InvalidIdError, SerializationError, StepTimeoutError } from '../../../src/index.ts'
import type { PassEnd } from '../../../src/runtime/replay/pass.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { door, refusal } from '../../api/engine/support.ts'
import { Recorder } from './recorder.ts'
import { type Body, FastClock, newPass, turns, walk, walkBody } from './rehearsal.ts'

const atOnce = async (): Promise<void> => {}

async function pass(recorder: Recorder, body: Body): Promise<PassEnd> {
  return (await walk(recorder, new FastClock(1), body)).end
}

/** What was applied, in short. */
function appliedOf({ facts }: Recorder): readonly string[] {
  return facts.applied.map(({ position, effect }) => {
    if (effect.type === 'start') return `${position} start ${effect.run.id} ${effect.run.input}`
    const value = effect.type === 'put' ? effect.value : effect.type === 'signal' ? effect.payload : ''
    return `${position} ${effect.type} ${effect.key} ${value}`.trim()
  })
}

it('Q38: effects are committed with the record of the step, once', async () => {
  const recorder = new Recorder([], atOnce)
  const body: Body = (ctx) =>
    ctx.step('settle', async ({ effects }) => {
      effects.put('a', 1)
      effects.put('a', { later: true })
      effects.delete('b')
      effects.delete('b')
      effects.sendSignal('c', 'first')
      const id = await effects.start('receipt', 5, { queue: 'mail' })
      effects.sendSignal('c')
      expect(recorder.facts.applied).toEqual([])
      return id
    })
  expect(await pass(recorder, body)).toMatchObject({ value: 'run~0.0.0' })
  const applied = appliedOf(recorder)
  expect(applied.slice(0, 4)).toEqual([
    '0 put a {"later":true}',
    '0 delete b',
    '0 signal c "first"',
    '0 start run~0.0.0 5',
  ])
  expect(applied).toHaveLength(5)
  expect(recorder.facts.children.get('run~0.0.0')).toMatchObject({ parentId: null })
  // They came with the entry, not before or after it.
  for (const { entries, applied: at } of recorder.moments) expect(at).toHaveLength(5 * entries.length)
  await pass(recorder, body)
  expect(appliedOf(recorder)).toEqual(applied)
})

it('Q38, J16: what a failed attempt has staged is forgotten, what the last one has staged with it', async () => {
  const recorder = new Recorder([], atOnce)
  const ids: string[] = []
  await pass(recorder, async (ctx) => {
    await ctx.step('retried', { maxAttempts: 3, backoff: { base: 1 } }, async ({ effects, attempt }) => {
      effects.put(`attempt ${attempt}`, attempt)
      ids.push(await effects.start('job', attempt), await effects.start('job', attempt))
      if (attempt < 3) throw new Error('again')
    })
    const staging = async ({ effects }: { effects: StepEffects }): Promise<void> => {
      effects.put('fails', 1)
      throw new Error('for good')
    }
    await ctx.step('fails', staging).catch(() => {})
    await ctx
      .step('unstorable', ({ effects }) => {
        effects.put('unstorable', 1)
        return () => {}
      })
      .catch(() => {})
  })
  expect(appliedOf(recorder)).toEqual(['0 put attempt 3 3', '0 start run~0.0.0 3', '0 start run~0.0.1 3'])
  // As with the idempotency key, the same follow-up has the same id on every attempt.
  expect(ids).toEqual(['run~0.0.0', 'run~0.0.1', 'run~0.0.0', 'run~0.0.1', 'run~0.0.0', 'run~0.0.1'])
})

it('ids of follow-ups are other ones after a requeue, and never those of children', async () => {
  const recorder = new Recorder([], atOnce)
  const walked = newPass({ port: recorder, entries: [], clock: new MockClock(0), epoch: 1 })
  await walkBody(walked, async (ctx) => {
    await ctx.start('child')
    await ctx.step('step', ({ effects }) => effects.start('job'))
  })
  expect([...recorder.facts.children.keys()]).toEqual(['run~1.0', 'run~1.1.0'])
})

it('values are stored as they were when they were staged', async () => {
  const recorder = new Recorder([], atOnce)
  await pass(recorder, (ctx) =>
    ctx.step('step', async ({ effects }) => {
      const order = { items: 1 }
      effects.put('order', order)
      effects.sendSignal('order', order)
      const started = effects.start('job', order)
      order.items = 2
      await started
    }),
  )
  expect(appliedOf(recorder)).toEqual([
    '0 put order {"items":1}',
    '0 signal order {"items":1}',
    '0 start run~0.0.0 {"items":1}',
  ])
})

it('J16: mistakes are thrown where they are made, and stage nothing', async () => {
  const recorder = new Recorder([], atOnce)
  const refusals: unknown[] = []
  await pass(recorder, (ctx) =>
    ctx.step('step', async ({ effects }) => {
      effects.put('put', 1)
      effects.delete('deleted')
      for (const act of [
        () => effects.delete('put'),
        () => effects.put('deleted', 1),
        () => effects.put('perdure:own', 1),
        () => effects.delete(''),
        () => effects.sendSignal('line\nbreak'),
        () => effects.put('function', () => {}),
        () => effects.put('nothing', undefined),
        () => effects.put('large', 'x'.repeat(1024 * 1024)),
        () => effects.sendSignal('key', Symbol('s')),
        () => effects.start('job', () => {}),
        () => effects.start('refused'),
      ]) {
        refusals.push(await refusal(Promise.resolve().then(act)))
      }
      effects.put('fits', 'x'.repeat(1024 * 1024 - 2))
    }),
  )
  const [config, id, serialization] = [ConfigurationError, InvalidIdError, SerializationError].map((type) =>
    expect.any(type),
  )
  expect(refusals.slice(0, 5)).toEqual([config, config, id, id, id])
  expect(refusals.slice(5)).toEqual([
    ...Array(5).fill(serialization),
    expect.objectContaining({ message: 'this start is refused' }),
  ])
  expect(recorder.facts.applied.map(({ effect }) => 'key' in effect && effect.key)).toEqual(['put', 'deleted', 'fits'])
})

it('J16: nothing is staged when the attempt is over: returned, failed, or timed out', async () => {
  const recorder = new Recorder([], atOnce)
  const kept: StepEffects[] = []
  const hanging = door()
  await pass(recorder, async (ctx) => {
    await ctx.step('returns', ({ effects }) => void kept.push(effects))
    await ctx.step('fails', ({ effects }) => Promise.reject(new Error(String(kept.push(effects))))).catch(() => {})
    const untouched: { readonly effects: StepEffects }[] = []
    await ctx.step('untouched', (step) => void untouched.push(step))
    for (const { effects } of untouched) kept.push(effects)
    const timedOut = ctx.step('hangs', { timeout: 5 }, async ({ effects }) => {
      kept.push(effects)
      effects.put('in time', 1)
      await hanging.opened
    })
    expect(await refusal(timedOut)).toBeInstanceOf(StepTimeoutError)
  })
  expect(kept).toHaveLength(4)
  for (const effects of kept) {
    for (const act of [
      () => effects.put('late', 1),
      () => effects.delete('late'),
      () => effects.sendSignal('late'),
      () => effects.start('late'),
    ]) {
      const error = await refusal(Promise.resolve().then(act))
      expect(error).toBeInstanceOf(ConfigurationError)
      expect(String(error)).toContain('after the attempt had ended')
    }
  }
  hanging.open()
  expect(recorder.facts.applied).toEqual([])
})

it('a start that nobody awaited is waited for, and fails the attempt if it is refused', async () => {
  const recorder = new Recorder([], atOnce)
  const end = await pass(recorder, async (ctx) => {
    await ctx.step('forgets', ({ effects }) => void effects.start('job', 1))
    return ctx.step('forgets', ({ effects }) => void effects.start('refused')).catch(String)
  })
  expect(end).toMatchObject({ value: 'Error: this start is refused' })
  expect(appliedOf(recorder)).toEqual(['0 start run~0.0.0 1'])
})

it('a refused start that the function has seen to is no failure', async () => {
  const recorder = new Recorder([], atOnce)
  const end = await pass(recorder, (ctx) =>
    ctx.step('sees to it', async ({ effects }) => {
      try {
        return await effects.start('refused')
      } catch {
        return effects.start('job')
      }
    }),
  )
  expect(end).toMatchObject({ value: 'run~0.0.1' })
  expect(recorder.facts.applied).toHaveLength(1)
})

it('a step that ends after its run has no effects', async () => {
  const recorder = new Recorder([], atOnce)
  const held = door()
  await pass(recorder, async (ctx) => {
    void ctx.step('slow', async ({ effects }) => {
      effects.put('late', 1)
      await held.opened
    })
    await ctx.step('quick', () => {})
  })
  held.open()
  await turns(10)
  expect(recorder.facts.applied).toEqual([])
})
