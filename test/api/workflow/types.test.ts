/** What the types of a body's calls say, checked by tsc; nothing here is run. */
import { expectTypeOf, it } from 'vitest'
import type { WorkflowContext } from '../../../src/api/context.ts'
import { type SignalResult, workflow } from '../../../src/index.ts'

const convert = workflow('convert', async (_ctx, file: string) => ({ file, size: 1 }))
const tick = workflow('tick', async () => 7n)

async function body(ctx: WorkflowContext<unknown>): Promise<void> {
  const child = await ctx.start(convert, 'intro.mov', { queue: 'media', detached: true })
  expectTypeOf(await child.result()).toEqualTypeOf<{ file: string; size: number }>()
  expectTypeOf(await (await ctx.start(tick)).result()).toEqualTypeOf<bigint>()
  expectTypeOf(await (await ctx.start('by name', { any: 1 })).result()).toEqualTypeOf<unknown>()
  // @ts-expect-error a number is no file
  await ctx.start(convert, 5)
  // @ts-expect-error the input is missing
  await ctx.start(convert)
  // @ts-expect-error there is no such option
  await ctx.start(convert, 'intro.mov', { detach: true })

  expectTypeOf(await ctx.waitForSignal('key')).toEqualTypeOf<SignalResult<unknown>>()
  const answer = await ctx.waitForSignal<'yes' | 'no'>('key', { timeout: '1h' })
  if (answer.ok) expectTypeOf(answer.payload).toEqualTypeOf<'yes' | 'no'>()
  // @ts-expect-error nothing came
  else answer.payload
  expectTypeOf(await ctx.sendSignal('key')).toEqualTypeOf<'delivered' | 'buffered' | 'replaced'>()

  await ctx.step('step', async ({ effects }) => {
    expectTypeOf(await effects.start(convert, 'intro.mov')).toEqualTypeOf<string>()
    expectTypeOf(await effects.start('by name')).toEqualTypeOf<string>()
    // @ts-expect-error a number is no file
    await effects.start(convert, 5)
    // @ts-expect-error a follow-up is never a child
    await effects.start(convert, 'intro.mov', { detached: true })
  })
}

it('a body is typed', () => {
  expectTypeOf(body).toBeFunction()
})
