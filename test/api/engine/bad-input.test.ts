/** What is refused at the call: with a typed error that says what is allowed, and nothing stored. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  ConfigurationError,
  Engine,
  InvalidDurationError,
  InvalidIdError,
  PerdureError,
  SerializationError,
  UnknownDefinitionError,
  ValidationError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { KINDS } from './places.ts'
import { ended, refusal } from './support.ts'

const logger = silent

/** A value as a caller without types may give it. */
const untyped = (value: unknown): never => value as never

const BAD_IDS: readonly (readonly [string, unknown])[] = [
  ['empty', ''],
  ['a control character', 'a\nb'],
  ['NUL', 'a\0b'],
  ['a C1 control character', 'a\u0085b'],
  ['129 bytes', 'x'.repeat(129)],
  ['129 bytes of multi-byte text', `${'ü'.repeat(64)}x`],
  ['a tilde', 'parent~1'],
  ['half of a surrogate pair', 'a\ud800'],
  ['a number', 42],
  ['null', null],
  ['an object', {}],
]
const BAD_DURATIONS: readonly unknown[] = [
  Number.NaN,
  -1,
  Infinity,
  -Infinity,
  'soon',
  '',
  '-5m',
  null,
  {},
  true,
  2 ** 60,
]

describe.each(KINDS)('bad input on $kind', ({ place }) => {
  const echo = workflow('echo', async (_ctx, value: unknown) => value)

  async function refusedEverywhere(attempt: (engine: Engine) => Promise<unknown>): Promise<PerdureError> {
    const engine: Engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    const before = await refusal(attempt(engine))
    await engine.launch()
    const after = await refusal(attempt(engine))
    expect(await engine.runs.list()).toEqual({ runs: [], cursor: undefined })
    expect(after).toEqual(before)
    if (!(after instanceof PerdureError)) throw after
    return after
  }

  it.each(BAD_IDS)('an id: %s', async (_what, id) => {
    const start = await refusedEverywhere((engine) => engine.start(echo, 1, { id: untyped(id) }))
    expect(start).toBeInstanceOf(InvalidIdError)
    const many = await refusedEverywhere((engine) =>
      engine.startMany(echo, [{ input: 1 }, { input: 1, options: { id: untyped(id) } }]),
    )
    expect(many).toBeInstanceOf(InvalidIdError)
  })

  it('the longest id and the oddest allowed ones are fine', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    await engine.launch()
    for (const id of ['x'.repeat(128), 'ü'.repeat(64), ' ', '.', '../..', '🙂', "'", '%']) {
      expect(await (await engine.start(echo, id, { id })).result()).toBe(id)
    }
  })

  it.each(BAD_DURATIONS)('a duration: %s', async (timeout) => {
    const error = await refusedEverywhere((engine) => engine.start(echo, 1, { timeout: untyped(timeout) }))
    expect(error).toBeInstanceOf(InvalidDurationError)
    expect(() => workflow('w', { timeout: untyped(timeout) }, async () => {})).toThrow(InvalidDurationError)
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    const run = await engine.start(echo, 1)
    expect(await refusal(run.result({ timeout: untyped(timeout) }))).toBeInstanceOf(InvalidDurationError)
    expect(await refusal(Promise.resolve().then(() => engine.shutdown({ timeout: untyped(timeout) })))).toBeInstanceOf(
      InvalidDurationError,
    )
    expect(await run.status()).toBe('ENQUEUED')
  })

  it('an option that does not exist, with the one that was meant', async () => {
    const error = await refusedEverywhere((engine) => engine.start(echo, 1, untyped({ tiemout: 5 })))
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(error.message).toContain("did you mean 'timeout'?")
    for (const options of [5, 'id', null, []]) {
      const refused = await refusedEverywhere((engine) => engine.start(echo, 1, untyped(options)))
      expect(refused).toBeInstanceOf(ConfigurationError)
    }
  })

  it('an unknown definition, by name and by object', async () => {
    const twin = workflow('echo', async () => 'another function of that name')
    const stranger = workflow('stranger', async () => {})
    for (const target of ['ehco', '', stranger, twin, { name: 'echo', kind: 'workflow' }, undefined, null, 5]) {
      const error = await refusedEverywhere((engine) => engine.start(untyped(target), untyped(1)))
      expect(error).toBeInstanceOf(UnknownDefinitionError)
      const many = await refusedEverywhere((engine) => engine.startMany(untyped(target), [{ input: untyped(1) }]))
      expect(many).toBeInstanceOf(UnknownDefinitionError)
    }
    const named = await refusedEverywhere((engine) => engine.start(untyped('ehco'), untyped(1)))
    expect(named.message).toContain('Registered: echo')
    const other = await refusedEverywhere((engine) => engine.start(untyped(twin), untyped(1)))
    expect(other.message).toMatch(/not the one that the engine has under the name 'echo'/)
  })

  it('A-04 A-08 an input that cannot be stored, naming the path', async () => {
    const error = await refusedEverywhere((engine) => engine.start(echo, { a: [{ send: () => {} }] }))
    expect(error).toBeInstanceOf(SerializationError)
    expect(error.message).toContain('a[0].send')
    expect(
      await refusedEverywhere((engine) => engine.startMany(echo, [{ input: 1 }, { input: Symbol('s') }])),
    ).toBeInstanceOf(SerializationError)
  })

  it('an input that the schema refuses, at start', async () => {
    const order = workflow('order', { input: z.object({ sku: z.string(), count: z.number().int() }) }, async () => 1)
    const engine = ended(new Engine({ store: place().connect(), definitions: [order], logger }))
    await engine.launch()
    const bad = untyped({ sku: 5, count: 1.5 })
    const error = await refusal(engine.start(order, bad))
    expect(error).toBeInstanceOf(ValidationError)
    expect(error).toMatchObject({ issues: [{ path: 'sku' }, { path: 'count' }] })
    const many = [{ input: { sku: 'a', count: 1 } }, { input: bad }]
    expect(await refusal(engine.startMany(order, many))).toBeInstanceOf(ValidationError)
    expect((await engine.runs.list()).runs).toEqual([])
  })

  it('a list of starts that is none', async () => {
    for (const items of [undefined, null, 5, 'ab', [undefined], [5], [{ inptu: 1 }]]) {
      const error = await refusedEverywhere((engine) => engine.startMany(echo, untyped(items)))
      expect(error).toBeInstanceOf(ConfigurationError)
    }
  })

  it('ids of calls on existing runs', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    const calls: readonly ((id: never) => unknown)[] = [
      (id) => engine.handle(id),
      (id) => engine.handle(echo, id),
      (id) => engine.cancel(id),
      (id) => engine.requeue(id),
      (id) => engine.runs.get(id),
      (id) => engine.runs.steps(id),
      (id) => engine.runs.attempts(id),
    ]
    for (const call of calls) {
      for (const id of [undefined, null, 5, {}, '', 'a\0']) {
        const error = await refusal(Promise.resolve().then(() => call(untyped(id))))
        expect(error).toBeInstanceOf(InvalidIdError)
      }
    }
  })

  it('options of a list', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    await engine.start(echo, 1)
    for (const options of [
      { limit: -1 },
      { limit: 1.5 },
      { limit: Number.NaN },
      { status: 'RUNNING' },
      { definition: 5 },
      { cursor: null },
      { cursor: 5 },
    ]) {
      expect(await refusal(engine.runs.list(untyped(options)))).toBeInstanceOf(ConfigurationError)
    }
    const misspelt = await refusal(engine.runs.list(untyped({ statsu: 'ENQUEUED' })))
    expect(misspelt).toMatchObject({ message: expect.stringContaining("did you mean 'status'?") })
    for (const options of [{ limit: 0 }, { cursor: 'foreign' }, { cursor: '' }, { cursor: 'NaN' }]) {
      expect(await engine.runs.list(options)).toEqual({ runs: [], cursor: undefined })
    }
  })
})

describe('bad options of an engine', () => {
  const echo = workflow('echo', async (_ctx, value: unknown) => value)
  const good = { store: memory(), definitions: [echo], logger }

  it.each([
    ['no options', undefined],
    ['no store', { definitions: [echo] }],
    ['a path for a store', { ...good, store: 'app.db' }],
    ['no definitions', { store: memory() }],
    ['definitions that are no array', { ...good, definitions: echo }],
    ['a function for a definition', { ...good, definitions: [async () => {}] }],
    ['an object for a definition', { ...good, definitions: [{ name: 'echo', kind: 'workflow' }] }],
    ['undefined for a definition', { ...good, definitions: [undefined] }],
    ['a name for a definition', { ...good, definitions: ['echo'] }],
    ['maxConcurrent 0', { ...good, maxConcurrent: 0 }],
    ['maxConcurrent 1.5', { ...good, maxConcurrent: 1.5 }],
    ['maxConcurrent NaN', { ...good, maxConcurrent: Number.NaN }],
    ['half a logger', { ...good, logger: { info: () => {} } }],
    ['no logger', { ...good, logger: null }],
    ['a clock that is none', { ...good, clock: 5 }],
    ['errors that are no array', { ...good, errors: Error }],
    ['errors that are no classes', { ...good, errors: [5] }],
    ['a clock of another kind', { ...good, clock: Date }],
    ['a clock for a store in use', { ...good, clock: { kind: 'mock' } }],
  ])('%s', async (_what, options) => {
    expect(() => new Engine(untyped(options))).toThrow(ConfigurationError)
  })

  it('options of memory()', () => {
    for (const options of [null, 5, { clock: 5 }, { clok: 1 }]) {
      expect(() => memory(untyped(options))).toThrow(ConfigurationError)
    }
  })

  it('say which was meant', () => {
    expect(() => new Engine(untyped({ ...good, definitons: [] }))).toThrow("did you mean 'definitions'?")
    expect(() => new Engine(untyped({ ...good, maxConcurent: 5 }))).toThrow("did you mean 'maxConcurrent'?")
  })

  it('durations, names and ids', () => {
    for (const maxBlocked of BAD_DURATIONS) {
      if (maxBlocked === undefined) continue
      expect(() => new Engine({ ...good, maxBlocked: untyped(maxBlocked) })).toThrow(InvalidDurationError)
    }
    for (const executorId of ['', 'a\n', 'x'.repeat(256), 5]) {
      expect(() => new Engine({ ...good, executorId: untyped(executorId) })).toThrow(InvalidIdError)
    }
  })

  it('two definitions of one name', () => {
    const twin = workflow('echo', async () => 1)
    expect(() => new Engine({ ...good, definitions: [echo, twin] })).toThrow("named 'echo'")
    expect(() => new Engine({ ...good, definitions: [echo, echo] })).toThrow(PerdureError)
  })
})

describe('bad definitions', () => {
  it('names', () => {
    for (const name of ['', 'a\0', 'x'.repeat(256), 5, undefined, null, '\udc00']) {
      expect(() => workflow(untyped(name), async () => {})).toThrow(InvalidIdError)
    }
  })

  it('functions and options', () => {
    expect(() => workflow('w', untyped(undefined))).toThrow(ConfigurationError)
    expect(() => workflow('w', untyped({}), untyped('fn'))).toThrow(ConfigurationError)
    expect(() => workflow('w', untyped(undefined), async () => {})).toThrow(ConfigurationError)
    expect(() => workflow('w', untyped({ timeot: 5 }), async () => {})).toThrow("did you mean 'timeout'?")
    for (const maxRecoveries of [-1, 1.5, Number.NaN, '3']) {
      expect(() => workflow('w', { maxRecoveries: untyped(maxRecoveries) }, async () => {})).toThrow(ConfigurationError)
    }
    expect(() => workflow('w', { input: untyped({}) }, async () => {})).toThrow(ConfigurationError)
    expect(() =>
      workflow(
        'w',
        { output: untyped(String) },
        untyped(async () => {}),
      ),
    ).toThrow(ConfigurationError)
  })
})
