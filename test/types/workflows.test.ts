/** What is inferred of workflows, engines and handles; a line that must not compile is marked so. Checked by `tsc -p .`. */
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  type AnyDefinition,
  define,
  Engine,
  type Handle,
  type InputOf,
  type OutputOf,
  type RunResult,
  type RunStatus,
  type SqlTransaction,
  workflow,
} from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'

interface Mailer {
  send(email: { readonly to: string }): Promise<string>
}
const mailer: Mailer = { send: async ({ to }) => to }

const email = z.object({ to: z.string(), cc: z.string().default('nobody') })
const convert = workflow('convert', async (ctx, file: string) => ctx.step('transcode', async () => `${file}.mp4`))
const tick = workflow('tick', async (ctx) => {
  await ctx.sleep('1s')
})
const plusOne = workflow('plusOne', { timeout: '1h', maxRecoveries: 3 }, async (_ctx, n: number) => n + 1)
const parsed = workflow('parsed', { input: email }, async (_ctx, { to, cc }) => [to.length, cc.length] as const)
const both = workflow('both', { input: email, output: z.number().transform(String) }, async (_ctx, { cc }) => cc.length)
const checked = workflow('checked', { output: z.number().transform(String) }, async (_ctx, n: number) => n)
const optional = workflow('optional', async (_ctx, n?: number) => n ?? 0)
const app = define<{ readonly mailer: Mailer }>()
const greet = app.workflow('greet', async (ctx, to: string) => ctx.state.mailer.send({ to }))
const one = define<{ readonly db: number }>().workflow('one', async (ctx, n: number) => ctx.state.db + n)
const two = define<{ readonly mail: string }>().workflow('two', async (ctx, _n: number) => ctx.state.mail)

const store = memory()
const engine = new Engine({
  store,
  definitions: [convert, tick, plusOne, parsed, both, checked, optional, greet],
  state: { mailer },
})

/** Only its types are looked at. */
const never = (_calls: () => unknown): void => {}

describe('types of workflows', () => {
  it('definitions say what goes in and comes out', () => {
    expectTypeOf<InputOf<typeof convert>>().toEqualTypeOf<string>()
    expectTypeOf<OutputOf<typeof convert>>().toEqualTypeOf<string>()
    expectTypeOf<OutputOf<typeof tick>>().toEqualTypeOf<void>()
    expectTypeOf<InputOf<typeof parsed>>().toEqualTypeOf<{ to: string; cc?: string | undefined }>()
    expectTypeOf<OutputOf<typeof parsed>>().toEqualTypeOf<readonly [number, number]>()
    expectTypeOf<OutputOf<typeof both>>().toEqualTypeOf<string>()
    expectTypeOf<OutputOf<typeof checked>>().toEqualTypeOf<string>()
    expectTypeOf<InputOf<typeof checked>>().toEqualTypeOf<number>()
    expectTypeOf(convert.name).toEqualTypeOf<'convert'>()
    expectTypeOf(convert.kind).toEqualTypeOf<'workflow'>()
    expectTypeOf(convert).toExtend<AnyDefinition>()
    expectTypeOf(greet).toExtend<AnyDefinition>()
  })

  it('starts by definition', () => {
    never(async () => {
      expectTypeOf(await engine.start(convert, 'intro', { id: 'x', timeout: '1m' })).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await engine.start(tick)).toEqualTypeOf<Handle<void>>()
      expectTypeOf(await engine.start(tick, undefined, { id: 'x' })).toEqualTypeOf<Handle<void>>()
      expectTypeOf(await engine.start(optional)).toEqualTypeOf<Handle<number>>()
      expectTypeOf(await engine.start(optional, 3)).toEqualTypeOf<Handle<number>>()
      expectTypeOf(await engine.start(parsed, { to: 'a' })).toEqualTypeOf<Handle<readonly [number, number]>>()
      expectTypeOf(await engine.start(both, { to: 'a', cc: 'b' })).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await engine.start(greet, 'a')).toEqualTypeOf<Handle<string>>()
      // @ts-expect-error wrong input
      await engine.start(convert, 3)
      // @ts-expect-error no input
      await engine.start(convert)
      // @ts-expect-error an input where there is none
      await engine.start(tick, 3)
      // @ts-expect-error an input that the schema does not take
      await engine.start(parsed, { too: 'a' })
      // @ts-expect-error an option that does not exist
      await engine.start(convert, 'intro', { tiemout: 5 })
    })
  })

  it('starts by name', () => {
    never(async () => {
      expectTypeOf(await engine.start('convert', 'intro')).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await engine.start('tick')).toEqualTypeOf<Handle<void>>()
      expectTypeOf(await engine.start('both', { to: 'a' })).toEqualTypeOf<Handle<string>>()
      expectTypeOf(await engine.start('parsed', { to: 'a' })).toEqualTypeOf<Handle<readonly [number, number]>>()
      // @ts-expect-error unknown name
      await engine.start('nope', 1)
      // @ts-expect-error wrong input
      await engine.start('convert', 1)
      // @ts-expect-error an input that the schema does not take
      await engine.start('both', { too: 'a' })
    })
  })

  it('starts many', () => {
    never(async () => {
      const handles = await engine.startMany(
        convert,
        ['a', 'b'].map((file) => ({ input: file, options: { id: file } })),
      )
      expectTypeOf(handles).toEqualTypeOf<Handle<string>[]>()
      // @ts-expect-error one wrong input
      await engine.startMany(convert, [{ input: 'a' }, { input: 3 }])
    })
  })

  it('handles and results', () => {
    never(async () => {
      expectTypeOf(engine.handle(convert, 'x')).toEqualTypeOf<Handle<string>>()
      expectTypeOf(engine.handle<number>('x')).toEqualTypeOf<Handle<number>>()
      expectTypeOf(engine.handle('x')).toEqualTypeOf<Handle<unknown>>()
      const run = await engine.start(convert, 'a')
      expectTypeOf(await run.result({ timeout: '1s' })).toEqualTypeOf<string>()
      expectTypeOf(await run.fetchResult()).toEqualTypeOf<RunResult<string> | undefined>()
      expectTypeOf(await run.status()).toEqualTypeOf<RunStatus>()
      expectTypeOf(await run.cancel()).toEqualTypeOf<boolean>()
      const fetched = await run.fetchResult()
      if (fetched?.ok === true) expectTypeOf(fetched.output).toEqualTypeOf<string>()
      else if (fetched !== undefined) expectTypeOf(fetched.error).toEqualTypeOf<Error>()
    })
  })

  it('an engine has the state that its definitions need', () => {
    never(() => {
      new Engine({ store, definitions: [convert] })
      new Engine({ store, definitions: [convert], state: 5 })
      new Engine({ store, definitions: [one, two], state: { db: 1, mail: 'x' } })
      // @ts-expect-error state missing
      new Engine({ store, definitions: [greet] })
      // @ts-expect-error wrong state
      new Engine({ store, definitions: [greet], state: {} })
      // @ts-expect-error half of the state
      new Engine({ store, definitions: [one, two], state: { db: 1 } })
      // @ts-expect-error no definition
      new Engine({ store, definitions: [async () => {}] })
    })
  })

  it('definitions may come from a plain list, and engines go to functions', () => {
    never(async () => {
      const definitions = [one, two]
      const listed = new Engine({ store, definitions, state: { db: 1, mail: 'x' } })
      expectTypeOf(await (await listed.start('two', 1)).result()).toEqualTypeOf<string>()
      expectTypeOf(await (await listed.start(one, 1)).result()).toEqualTypeOf<number>()
      const takes = (_engine: Engine): void => {}
      takes(listed)
      takes(engine)
    })
  })

  it('contexts', () => {
    workflow('context', async (ctx) => {
      expectTypeOf(ctx.state).toEqualTypeOf<unknown>()
      expectTypeOf(await ctx.step('a', () => 1)).toEqualTypeOf<number>()
      expectTypeOf(await ctx.step('a', async () => 'x')).toEqualTypeOf<string>()
      expectTypeOf(
        await ctx.step('a', { maxAttempts: 3, backoff: { base: '1s' } }, ({ attempt }) => attempt),
      ).toEqualTypeOf<number>()
      expectTypeOf(await ctx.step('a', ({ signal }) => signal.aborted)).toEqualTypeOf<boolean>()
      expectTypeOf(await ctx.now()).toEqualTypeOf<Date>()
      expectTypeOf(ctx.uuid()).toEqualTypeOf<string>()
      expectTypeOf(ctx.random()).toEqualTypeOf<number>()
      // @ts-expect-error workflow bodies get no signal
      ctx.signal
      // @ts-expect-error unknown option
      await ctx.step('a', { retries: 3 }, () => 1)
    })
    workflow('transactions', async (ctx) => {
      expectTypeOf(await ctx.transaction('a', () => 1)).toEqualTypeOf<number>()
      expectTypeOf(
        await ctx.transaction('a', { isolationLevel: 'serializable', maxAttempts: 3, timeout: '1s' }, async (tx) => {
          expectTypeOf(tx).toEqualTypeOf<SqlTransaction>()
          expectTypeOf(tx.native).toEqualTypeOf<unknown>()
          expectTypeOf(await tx.query('select 1')).toEqualTypeOf<Record<string, unknown>[]>()
          expectTypeOf(await tx.run('delete from t where a = ?', [1])).toEqualTypeOf<{ readonly changes: number }>()
          return tx.query<{ n: number }>('select n from t')
        }),
      ).toEqualTypeOf<{ n: number }[]>()
      // @ts-expect-error no such level
      await ctx.transaction('a', { isolationLevel: 'snapshot' }, () => 1)
      // @ts-expect-error a transaction stages no effects
      await ctx.transaction('a', (tx) => tx.effects)
    })
    app.workflow('state', async (ctx) => {
      expectTypeOf(ctx.state).toEqualTypeOf<{ readonly mailer: Mailer }>()
    })
    // @ts-expect-error an output that the schema does not take
    workflow('wrong', { output: z.number() }, async () => 'text')
    // @ts-expect-error an annotation that the schema does not give
    workflow('wrong', { input: email }, async (_ctx, input: number) => input)
  })
})
