import assert from 'node:assert/strict'
import vm from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCodec } from '../../../src/core/codec.ts'
import { plain, storable, texts } from './values.ts'

const codec = createCodec()

function roundTrip(value: unknown): unknown {
  return codec.decode(codec.encode(value))
}

function keep(value: unknown): void {
  assert.deepStrictEqual(roundTrip(value), value)
}

describe('plain JSON', () => {
  it('is stored as the text that JSON.stringify gives', () => {
    fc.assert(
      fc.property(plain, (value) => {
        fc.pre(!(typeof value === 'object' && value !== null && Object.hasOwn(value, '$perdure')))
        expect(codec.encode(value)).toBe(JSON.stringify(value))
        keep(value)
      }),
    )
  })

  it('is read whatever wrote it', () => {
    expect(codec.decode(' { "a" : [ 1 , null ] } ')).toEqual({ a: [1, null] })
  })

  it('keeps a key __proto__ as a key, and pollutes nothing', () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}')
    const text = codec.encode(value)
    expect(text).toBe('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}')
    keep(value)
    expect(Object.hasOwn(Object(codec.decode(text)), '__proto__')).toBe(true)
    expect(Reflect.get({}, 'polluted')).toBe(undefined)
  })

  it('takes a key $perdure of the user for what it is, at the top and below', () => {
    for (const value of [{ $perdure: 1, value: 2 }, { $perdure: null }, [{ $perdure: 1 }], { a: { $perdure: 1 } }])
      keep(value)
  })
})

describe('beyond JSON', () => {
  it('gives back equal values, prototypes included (A-05)', () => {
    fc.assert(fc.property(storable, keep), { numRuns: 500 })
  })

  it('writes neither NUL nor lone surrogates, which PostgreSQL refuses (A-11, A-12)', () => {
    const clean = (text: string): boolean => !text.includes('\0') && !/\p{Surrogate}/u.test(text)
    fc.assert(fc.property(storable, (value) => clean(codec.encode(value))))
    fc.assert(fc.property(texts, (text) => clean(codec.encode({ [text]: new Error(text) }))))
    for (const text of ['\0', '\ud800', '\udc00', 'a\udc00\ud800b']) keep({ [text]: [text, new Error(text)] })
  })

  it('tells undefined, null, holes and missing keys apart (A-01, A-20)', () => {
    const sparse = Object.assign(new Array<number>(3), { 0: 1, 2: 3 })
    for (const value of [undefined, null, [undefined], [null], sparse, { a: undefined }, {}, [undefined, sparse]]) {
      keep(value)
    }
    expect(codec.encode(null)).toBe('null')
    expect(codec.encode(undefined)).toBe('{"$perdure":1,"value":{"t":2,"s":1}}')
  })

  it('keeps the order of Map and Set', () => {
    const value = roundTrip([
      new Map([
        ['b', 1],
        ['a', 2],
      ]),
      new Set([3, 1, 2]),
    ])
    assert(Array.isArray(value))
    expect([...value[0].keys(), ...value[1]]).toEqual(['b', 'a', 3, 1, 2])
  })

  it('keeps sizes that the format underneath would write and then refuse to read', () => {
    keep(2n ** 200_000n)
    keep(-(2n ** 200_000n))
    keep([2n ** 64n, -(2n ** 64n), 2n ** 64n - 1n, 0n])
    keep(new RegExp('x'.repeat(30_000)))
    keep(Array.from({ length: 40 }, () => /\p{L}/u))
    keep(Buffer.alloc(3_000_000, 'perdure'))
  })

  it('keeps binary values without the rest of their buffer', () => {
    const secret = Buffer.from('..secret..password')
    const view = new Uint8Array(secret.buffer, secret.byteOffset, 2)
    keep(view)
    const text = codec.encode(view)
    expect(text).toContain(Buffer.from('..').toString('base64'))
    expect(text.length).toBeLessThan(300)
    keep([Buffer.from('a'), new ArrayBuffer(3), new DataView(new ArrayBuffer(2)), new Uint8ClampedArray([1])])
    keep([new Int8Array([-1]), new Uint16Array([1]), new Int16Array([-1]), new Uint32Array([1]), new Int32Array([-1])])
    keep([new Float32Array([0.5]), new Float64Array([-0]), new BigInt64Array([-1n]), new BigUint64Array([1n])])
  })

  it('keeps dates, invalid ones too, and expressions with their lastIndex', () => {
    keep([new Date(0), new Date(8.64e15), new Date(-8.64e15)])
    const invalid = roundTrip(new Date(Number.NaN))
    expect(invalid instanceof Date && Number.isNaN(invalid.getTime())).toBe(true)
    const expression = /a/g
    expression.lastIndex = 7
    keep(expression)
  })

  it('takes values of another realm for the same of this one', () => {
    const value: unknown = vm.runInNewContext(
      '({ list: [1], date: new Date(5), map: new Map([[1, { a: undefined }]]) })',
    )
    assert.deepStrictEqual(roundTrip(value), { list: [1], date: new Date(5), map: new Map([[1, { a: undefined }]]) })
  })

  it('reads an accessor once, as a value', () => {
    let reads = 0
    const value = {
      get date() {
        reads++
        return new Date(reads)
      },
    }
    const read: unknown = roundTrip(value)
    expect(read).toEqual({ date: expect.any(Date) })
    expect(Object.getOwnPropertyDescriptor(read, 'date')).toHaveProperty('value')
  })
})

describe('shared and cyclic references', () => {
  it('stay shared', () => {
    const shared = { a: 1 }
    const value = roundTrip({ left: shared, right: [shared], map: new Map([[shared, shared]]) })
    assert(typeof value === 'object' && value !== null && 'left' in value && 'right' in value && 'map' in value)
    assert(Array.isArray(value.right) && value.map instanceof Map)
    expect(value.right[0]).toBe(value.left)
    expect(value.map.get(value.left)).toBe(value.left)
  })

  it('stay cyclic, through objects, arrays, maps, sets and errors', () => {
    const error = new Error('round')
    const value: Record<string, unknown> = { error }
    value['self'] = value
    value['list'] = [value]
    value['map'] = new Map<unknown, unknown>([[value, value]])
    value['set'] = new Set([value])
    Object.assign(error, { cause: error, owner: value })
    keep(value)
    const read = roundTrip(error)
    assert(read instanceof Error)
    expect(read.cause).toBe(read)
  })

  it('never multiply: objects shared on each of hundreds of levels take one place each', () => {
    let value: unknown = { end: true }
    for (let level = 0; level < 499; level++) value = [value, value]
    expect(codec.encode(value).length).toBeLessThan(200_000)
    expect(codec.encode(roundTrip(value))).toBe(codec.encode(value))
  })
})

describe('depth', () => {
  const nested = (levels: number, innermost: unknown, wrap: (inner: unknown) => unknown): unknown => {
    let value = innermost
    for (let level = 0; level < levels; level++) value = wrap(value)
    return value
  }
  const wraps: readonly ((inner: unknown) => unknown)[] = [(inner) => [inner], (inner) => ({ inner })]

  it('may be a thousand levels of plain JSON, and five hundred of anything', () => {
    for (const wrap of [
      ...wraps,
      (inner: unknown) => new Map([[inner, inner]]),
      (inner: unknown) => new Set([inner]),
    ]) {
      const depths: readonly (readonly [number, unknown])[] = wraps.includes(wrap)
        ? [
            [1_000, 1],
            [500, undefined],
          ]
        : [[500, 1]]
      for (const [levels, innermost] of depths) {
        const text = codec.encode(nested(levels, innermost, wrap))
        expect(codec.encode(codec.decode(text))).toBe(text)
        expect(() => codec.encode(nested(levels + 1, innermost, wrap))).toThrow(/nested deeper than 500 levels/)
      }
    }
  })

  it('is refused beyond, however deep, with the path', () => {
    for (const levels of [1_001, 200_000]) {
      for (const wrap of wraps) {
        expect(() => codec.encode(nested(levels, 1, wrap))).toThrow(
          /^The value at \$.*deeper than 500 levels \(of plain JSON: 1000\)/,
        )
      }
    }
  })

  it('of causes is cut before the stack ends', () => {
    const error = nested(5_000, 'the first', (cause) => new Error('again', { cause }))
    let read = roundTrip(error)
    let causes = 0
    while (read instanceof Error && read.cause !== undefined) {
      read = read.cause
      causes++
    }
    expect(causes).toBeGreaterThan(150)
  })
})
