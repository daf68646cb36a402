/** Values for tests of the codec: whatever fast-check can think of, and the texts that break databases. */
import fc from 'fast-check'

const UNITS = ['\0', '\ud800', '\udc00', '\u2028', '<', '\\', '"', '\n', 'é', '😀', 'a', 'b', ' ', '7', '\u0007']
const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '$perdure',
  'then',
  'toJSON',
  'length',
  '',
  '0',
  'a\0b',
]

export const texts = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...UNITS) }))

const leaves = fc.oneof(
  texts,
  fc.double(),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.bigInt(),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ maxLength: 9 }),
  fc.float64Array({ maxLength: 4 }),
  fc.bigUint64Array({ maxLength: 4 }),
  fc.webUrl().map((url) => new URL(url)),
  fc.constantFrom(/a+\/b/giu, /\u2028</, /(?:)/),
)

const keys = fc.oneof(texts, fc.constantFrom(...KEYS))

/** Anything that can be stored, without shared references. */
export const storable: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaves,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.sparseArray(tie('value'), { maxNumElements: 3, maxLength: 8 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: false }),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie('value'), { maxLength: 3 }).map((members) => new Set(members)),
    fc
      .record({ message: texts, cause: tie('value'), code: texts })
      .map(({ message, cause, code }) => Object.assign(new TypeError(message, { cause }), { code })),
  ),
})).value

/** Plain JSON, in any shape. */
export const plain: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    texts,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(texts, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value
