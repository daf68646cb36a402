/** Inputs, outputs and errors of odd shapes, through the whole engine: the same live, stored, and read back. */
import { describe, expect, it } from 'vitest'
import { Engine, RunFailedError, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { KINDS } from './places.ts'
import { ended, refusal } from './support.ts'

const logger = silent

class Declined extends Error {
  readonly code: string
  readonly details: { readonly cents: number }

  constructor(message: string, code = 'DECLINED', cents = 5) {
    super(message)
    this.name = 'Declined'
    this.code = code
    this.details = { cents }
  }
}

describe.each(KINDS)('values on $kind', ({ place }) => {
  const echo = workflow('echo', async (ctx, value: unknown) => ctx.step('echo', () => value))

  it('A-01 A-20 nothing, undefined and null are kept apart', async () => {
    const home = place()
    const engine = ended(new Engine({ store: home.connect(), definitions: [echo], logger }))
    const nothing = workflow('nothing', async () => {})
    const other = ended(new Engine({ store: home.connect(), definitions: [nothing], logger }))
    await Promise.all([engine.launch(), other.launch()])
    const run = await other.start(nothing)
    expect(await run.result()).toBeUndefined()
    expect(await run.fetchResult()).toEqual({ ok: true, output: undefined })
    expect(await other.runs.get(run.id)).toMatchObject({ status: 'SUCCESS', input: undefined })
    for (const value of [undefined, null, [undefined], { a: undefined }, [null], '', 0, -0, Number.NaN, 10n]) {
      const { id } = await engine.start(echo, value)
      expect(await engine.handle(id).result()).toStrictEqual(value)
      expect(await other.handle(id).result()).toStrictEqual(value)
      expect((await other.runs.get(id))?.input).toStrictEqual(value)
      expect((await other.runs.steps(id))[0]?.output).toStrictEqual(value)
    }
  })

  it('A-04 an output that cannot be stored ends the run ERROR of kind serialization, with the path', async () => {
    const bad = workflow('bad', async (): Promise<unknown> => ({ list: [1, { socket: () => {} }] }))
    const engine = ended(new Engine({ store: place().connect(), definitions: [bad], logger }))
    await engine.launch()
    const run = await engine.start(bad)
    const error = await refusal(run.result({ timeout: '5s' }))
    expect(error).toMatchObject({
      kind: 'serialization',
      cause: { code: 'SERIALIZATION', path: expect.stringContaining('list[1].socket') },
    })
    expect(await run.status()).toBe('ERROR')
    expect(await engine.runs.get(run.id)).toMatchObject({ failureKind: 'serialization' })
  })

  it('A-11 A-12 NUL and lone surrogates, in values, keys, names of errors and messages', async () => {
    const odd = ['a\0b', '\ud800', '\udc00x', 'é'.normalize('NFD')]
    const fail = workflow('fail', async (ctx, text: string) => {
      await ctx.step('fails', () => {
        throw Object.assign(new Error(text), { [`key ${text}`]: text })
      })
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo, fail], logger }))
    await engine.launch()
    for (const text of odd) {
      const value = { text, [text]: [text], nested: new Map([[text, new Set([text])]]) }
      expect(await (await engine.start(echo, value)).result()).toStrictEqual(value)
      const error = await refusal((await engine.start(fail, text)).result())
      expect(error).toMatchObject({ kind: 'error', cause: { message: text, [`key ${text}`]: text } })
    }
  })

  it('A-14 W5 whatever is thrown, a reason is recorded', async () => {
    const thrower = workflow('thrower', async (_ctx, n: number) => {
      const hostile = {
        toString: () => {
          throw new Error('no')
        },
        fn: () => {},
      }
      const broken = new Error('broken')
      Object.defineProperty(broken, 'name', { get: hostile.toString })
      const revoked = Proxy.revocable({}, {})
      revoked.revoke()
      const things = ['text', 42, null, { a: 1 }, undefined, Symbol('s'), () => {}, hostile, Object.create(null)]
      throw [...things, broken, revoked.proxy][n]
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [thrower], logger }))
    await engine.launch()
    const causes: unknown[] = []
    for (let n = 0; n < 11; n += 1) {
      const run = await engine.start(thrower, n)
      const error = await refusal(run.result({ timeout: '5s' }))
      expect(error).toBeInstanceOf(RunFailedError)
      expect(error).toMatchObject({ kind: 'error', attempts: 1 })
      expect(error instanceof RunFailedError && typeof error.reason).toBe('string')
      expect(await run.status()).toBe('ERROR')
      causes.push(error instanceof Error ? error.cause : undefined)
    }
    expect(causes.slice(0, 5)).toEqual(['text', 42, null, { a: 1 }, undefined])
  })

  it('A-16 W5 a registered class comes back as itself: caught in the body, as the cause, and from another engine', async () => {
    const home = place()
    const seen: unknown[] = []
    const pay = workflow('pay', async (ctx) => {
      try {
        await ctx.step('charge', () => {
          throw new Declined('card declined')
        })
      } catch (error) {
        seen.push(error)
        throw error
      }
    })
    const knowing = { definitions: [pay], errors: [Declined], logger } as const
    const engine = ended(new Engine({ ...knowing, store: home.connect() }))
    await engine.launch()
    const run = await engine.start(pay)
    seen.push(((await refusal(run.result())) as RunFailedError).cause)
    const other = ended(new Engine({ ...knowing, store: home.connect() }))
    seen.push(((await refusal(other.handle(run.id).result())) as RunFailedError).cause)
    seen.push((await other.runs.get(run.id))?.error, (await other.runs.steps(run.id))[0]?.error)
    expect(seen).toHaveLength(5)
    for (const error of seen) {
      expect(error).toBeInstanceOf(Declined)
      expect(error).toMatchObject({ message: 'card declined', code: 'DECLINED', details: { cents: 5 } })
    }
    const stranger = ended(new Engine({ definitions: [], logger, store: home.connect() }))
    const plain = ((await refusal(stranger.handle(run.id).result())) as RunFailedError).cause
    expect(plain).not.toBeInstanceOf(Declined)
    expect(plain).toMatchObject({ name: 'Declined', message: 'card declined', code: 'DECLINED', details: { cents: 5 } })
  })
})
