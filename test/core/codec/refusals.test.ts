import { describe, expect, it } from 'vitest'
import { createCodec } from '../../../src/core/codec.ts'
import { SerializationError } from '../../../src/core/errors.ts'

const codec = createCodec()

function refusal(work: () => unknown): SerializationError {
  try {
    work()
  } catch (error) {
    if (error instanceof SerializationError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

class Account {
  readonly owner = 'me'
}

const revoked = Proxy.revocable({}, {})
revoked.revoke()

const REFUSED: readonly (readonly [string, unknown, string, RegExp])[] = [
  ['a function', { items: [0, 1, 2, { fn: () => 1 }] }, '$.items[3].fn', /a function \(fn\)/],
  ['a function at the top', () => 1, '$', /a function/],
  ['a symbol', [Symbol('s')], '$[0]', /a symbol/],
  ['a key that is a symbol', { a: { [Symbol('s')]: 1 } }, '$.a', /key is a symbol/],
  ['an instance of a class', { 'the account': new Account() }, '$["the account"]', /an instance of Account/],
  ['an instance with toJSON', { a: Object.create({ toJSON: () => 1 }) }, '$.a', /an instance of a class/],
  ['a method toJSON', { toJSON: () => 1 }, '$.toJSON', /a function/],
  ['a promise', new Map([['p', Promise.resolve()]]), '$.get("p")', /an instance of Promise/],
  ['a key of a Map', new Map([[() => 1, 1]]), '$.keys()[0]', /a function/],
  ['a value under a key without a name', new Map([[{}, () => 1]]), '$.values()[0]', /a function/],
  ['a member of a Set', new Set([1, new WeakMap()]), '$.values()[1]', /an instance of WeakMap/],
  ['a stream', { body: new ReadableStream() }, '$.body', /an instance of ReadableStream/],
  ['a boxed scalar', [new String('x')], '$[0]', /an instance of String/],
  ['a generator', (function* () {})(), '$', /an instance of/],
  ['a subclass of Array', new (class List extends Array {})(), '$', /a subclass of Array/],
  ['a subclass of Map', new (class Index extends Map {})(), '$', /an instance of Index/],
  ['a subclass of Date', new (class Day extends Date {})(), '$', /an instance of Day/],
  ['an array with named properties', ['a'.match(/a/)], '$[0]', /an array with a named property \(index\)/],
  ['a Date with properties', Object.assign(new Date(0), { zone: 'UTC' }), '$', /properties of its own/],
  ['too many holes', new Array(1_000_000_000), '$', /more than 100000 holes/],
  ['shared memory', new SharedArrayBuffer(1), '$', /an instance of SharedArrayBuffer/],
  ['a proxy that throws', { a: revoked.proxy }, '$.a', /reading it failed/],
  [
    'an accessor that throws',
    {
      deep: [
        {
          get price(): number {
            throw new Error('no price')
          },
        },
      ],
    },
    '$.deep[0].price',
    /reading it failed: no price/,
  ],
]

describe('what can not be stored', () => {
  it.each(REFUSED)('is refused with its path: %s (A-04, A-08, A-13)', (_what, value, path, problem) => {
    const error = refusal(() => codec.encode(value))
    expect(error.path).toBe(path)
    expect(error.problem).toMatch(problem)
    expect(error.message).toContain(path)
  })

  it('is named by the two ends of a path that is long', () => {
    let value: unknown = { fn: () => 1 }
    for (let level = 0; level < 400; level++) value = { a: value }
    const { path } = refusal(() => codec.encode(value))
    expect(path.length).toBeLessThan(200)
    expect(path).toMatch(/^\$(\.a)+\.\.\.(\.a)+\.fn$/)
  })
})

describe('damaged text', () => {
  it.each([
    '',
    'undefined',
    '{"a":',
    '{"$perdure":2,"value":{"t":2,"s":1}}',
    '{"$perdure":1}',
    '{"$perdure":1,"value":7}',
    '{"$perdure":1,"value":{"t":99}}',
    '{"$perdure":1,"value":{"t":10,"i":0}}',
    '{"$perdure":1,"value":{"t":25,"i":0,"c":"other","s":{}}}',
    '{"$perdure":1,"value":{"t":25,"i":0,"c":"perdure","s":{"kind":{"t":1,"s":"odd"},"head":{"t":2,"s":1}}}}',
    '{"$perdure":1,"value":{"t":25,"i":0,"c":"perdure","s":{"kind":{"t":1,"s":"error"},"head":{"t":2,"s":1}}}}',
  ])('is refused when it is read: %s', (text) => {
    expect(refusal(() => codec.decode(text)).problem).toMatch(/^the stored text is damaged/)
  })

  it('is refused, not followed, when it is deep', () => {
    const levels = 100_000
    const text = `{"$perdure":1,"value":${'{"t":7,"i":0,"a":['.repeat(levels)}{"t":2,"s":1}${']}'.repeat(levels)}}`
    expect(refusal(() => codec.decode(text)).problem).toMatch(/damaged/)
  })
})
