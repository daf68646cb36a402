import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCodec } from '../../../src/core/codec.ts'
import { plain, storable } from './values.ts'

const codec = createCodec()
const canonical = (value: unknown): string => codec.canonical(codec.encode(value))

/** The same value with the keys of all objects the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (value instanceof Map) return new Map(Array.from(value, ([key, member]) => [reversed(key), reversed(member)]))
  if (value instanceof Set) return new Set(Array.from(value, reversed))
  if (typeof value !== 'object' || value === null) return value
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  const copy: object = prototype === null ? Object.create(null) : {}
  for (const [key, member] of Object.entries(value).reverse()) {
    Object.defineProperty(copy, key, { value: reversed(member), enumerable: true, configurable: true, writable: true })
  }
  return copy
}

function equal(left: unknown, right: unknown): boolean {
  try {
    assert.deepStrictEqual(left, right)
    return true
  } catch {
    return false
  }
}

describe('canonical text', () => {
  it('of plain JSON is JSON with sorted keys', () => {
    expect(canonical({ b: [{ d: 1, c: 2 }], a: null })).toBe('{"a":null,"b":[{"c":2,"d":1}]}')
    fc.assert(fc.property(plain, (value) => equal(JSON.parse(canonical(value)), value)))
    expect(codec.canonical('{ "b": 1, "a": 2 }')).toBe('{"a":2,"b":1}')
  })

  it('is the same whatever the order of keys', () => {
    fc.assert(fc.property(storable, (value) => canonical(reversed(value)) === canonical(value)))
  })

  it('is the same after a round trip', () => {
    fc.assert(fc.property(storable, (value) => canonical(codec.decode(codec.encode(value))) === canonical(value)))
  })

  it('differs for values that differ', () => {
    fc.assert(
      fc.property(storable, storable, (left, right) => {
        fc.pre(!equal(left, right))
        expect(canonical(left)).not.toBe(canonical(right))
      }),
    )
  })

  it('tells apart what JSON takes for the same', () => {
    const sparse = new Array(1)
    const values = [
      null,
      undefined,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      0,
      -0,
      1,
      1n,
      '1',
      'undefined',
      'NaN',
      [],
      {},
      sparse,
      [undefined],
      [null],
      { a: undefined },
      new Map(),
      new Set(),
      Object.create(null),
      new Date(1),
      'Date(1)',
      new Date(1).toISOString(),
      Buffer.from('a'),
      new Uint8Array([97]),
      /a/,
      /a/g,
      new URL('http://a/'),
      'http://a/',
      new Map([['a', 1]]),
      { a: 1 },
      new Map([
        ['a', 1],
        ['b', 2],
      ]),
      new Map([
        ['b', 2],
        ['a', 1],
      ]),
      new Set([1, 2]),
      new Set([2, 1]),
      2n ** 64n,
      (2n ** 64n).toString(16),
      [[1], 2],
      [1, [2]],
    ]
    expect(new Set(values.map(canonical)).size).toBe(values.length)
  })

  it('does not mind whether equal objects are one', () => {
    const shared = { a: 1 }
    expect(canonical([shared, shared])).toBe(canonical([{ a: 1 }, { a: 1 }]))
  })

  it('ends for cyclic values, and for shared ones that would fill the memory', () => {
    const cyclic = (): unknown => {
      const value: Record<string, unknown> = { list: [] }
      value['list'] = [value]
      return value
    }
    expect(canonical(cyclic())).toBe(canonical(cyclic()))
    expect(canonical(cyclic())).not.toBe(canonical({ list: [cyclic()] }))
    let value: unknown = 1
    for (let level = 0; level < 100; level++) value = [value, value]
    expect(() => canonical(value)).toThrow(/too large to be compared/)
  })
})
