/** Texts as they stand in databases. They must be readable for ever: never change one, only add. */
import assert from 'node:assert/strict'
import { describe, expect, it } from 'vitest'
import { createCodec } from '../../../src/core/codec.ts'
import { TimeoutError } from '../../../src/core/errors.ts'

const cyclic = new Map<unknown, unknown>()
cyclic.set('self', [cyclic, new Set([undefined, 5n])])

const GOLDEN: readonly (readonly [string, unknown])[] = [
  ['{"id":7,"tags":["a",null]}', { id: 7, tags: ['a', null] }],
  ['{"$perdure":1,"value":{"t":2,"s":1}}', undefined],
  [
    '{"$perdure":1,"value":{"t":10,"i":0,"p":{"k":["at","n","nothing"],"v":[{"t":5,"i":1,"s":"1970-01-01T00:00:00.000Z"},{"t":9,"i":2,"a":[{"t":2,"s":7},{"t":2,"s":4},0,{"t":3,"s":"1"}],"o":0},{"t":2,"s":1}]},"o":0}}',
    { at: new Date(0), n: Object.assign(new Array(4), [Number.NaN, -0], { 3: 1n }), nothing: undefined },
  ],
  [
    '{"$perdure":1,"value":{"t":8,"i":0,"e":{"k":[{"t":1,"s":"self"}],"v":[{"t":9,"i":2,"a":[{"t":4,"i":0},{"t":7,"i":3,"a":[{"t":2,"s":1},{"t":3,"s":"5"}]}],"o":0}]},"f":{"t":26,"i":1,"s":0}}}',
    cyclic,
  ],
  [
    String.raw`{"$perdure":1,"value":{"t":9,"i":0,"a":[{"t":25,"i":1,"s":{"kind":{"t":1,"s":"regexp"},"head":{"t":9,"i":2,"a":[{"t":1,"s":"a\\\\/b"},{"t":1,"s":"g"},{"t":0,"s":0}],"o":0},"body":{"t":2,"s":1}},"c":"perdure"},{"t":25,"i":3,"s":{"kind":{"t":1,"s":"url"},"head":{"t":1,"s":"https://example.com/a?b=c"},"body":{"t":2,"s":1}},"c":"perdure"},{"t":25,"i":4,"s":{"kind":{"t":1,"s":"bytes"},"head":{"t":9,"i":5,"a":[{"t":1,"s":"Buffer"},{"t":1,"s":"cGVyZHVyZQ=="}],"o":0},"body":{"t":2,"s":1}},"c":"perdure"},{"t":25,"i":6,"s":{"kind":{"t":1,"s":"bytes"},"head":{"t":9,"i":7,"a":[{"t":1,"s":"Uint16Array"},{"t":1,"s":"AQACAA=="}],"o":0},"body":{"t":2,"s":1}},"c":"perdure"},{"t":25,"i":8,"s":{"kind":{"t":1,"s":"bigint"},"head":{"t":1,"s":"400000000000000000"},"body":{"t":2,"s":1}},"c":"perdure"}],"o":0}}`,
    [/a\/b/g, new URL('https://example.com/a?b=c'), Buffer.from('perdure'), new Uint16Array([1, 2]), 2n ** 70n],
  ],
  [
    String.raw`{"$perdure":1,"value":{"t":11,"i":0,"p":{"k":["a"],"v":[{"t":1,"s":"\u0000\ud800\\x3C"}]},"o":0}}`,
    Object.assign(Object.create(null), { a: '\0\ud800<' }),
  ],
]

describe('stored texts', () => {
  it.each(GOLDEN)('are read and written as ever: %s', (text, value) => {
    const codec = createCodec()
    assert.deepStrictEqual(codec.decode(text), value)
    expect(codec.encode(value)).toBe(text)
  })

  it('of errors too, with a field that leads back to the error', () => {
    const text =
      '{"$perdure":1,"value":{"t":25,"i":0,"s":{"kind":{"t":1,"s":"error"},"head":{"t":9,"i":1,"a":[{"t":9,"i":2,"a":[{"t":1,"s":"perdure:TIMEOUT"},{"t":1,"s":"PerdureError"},{"t":1,"s":"Error"}],"o":0},{"t":1,"s":"TimeoutError"},{"t":1,"s":"Run r did not end."},{"t":1,"s":"stack"}],"o":0},"body":{"t":10,"i":3,"p":{"k":["enumerable","hidden"],"v":[{"t":10,"i":4,"p":{"k":["code","retryable","docs","runId","timeoutMs"],"v":[{"t":1,"s":"TIMEOUT"},{"t":2,"s":2},{"t":1,"s":"docs/errors.md#timeout"},{"t":1,"s":"r"},{"t":0,"s":5}]},"o":0},{"t":10,"i":5,"p":{"k":["cause"],"v":[{"t":4,"i":0}]},"o":0}]},"o":0}},"c":"perdure"}}'
    const error = createCodec().decode(text)
    assert(error instanceof TimeoutError)
    expect(error).toMatchObject({ code: 'TIMEOUT', message: 'Run r did not end.', stack: 'stack', timeoutMs: 5 })
    expect(error.cause).toBe(error)
    expect(createCodec().encode(error)).toBe(text)
  })
})
