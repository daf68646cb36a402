import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toMs, toWholeMs } from '../../src/core/duration.ts'
import { ConfigurationError, InvalidDurationError } from '../../src/core/errors.ts'

describe('toMs', () => {
  it.each([
    [0, 0],
    [-0, 0],
    [1.5, 1.5],
    [250, 250],
    ['0', 0],
    ['100', 100],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['1.5h', 5_400_000],
    ['2 days', 172_800_000],
    ['-0s', 0],
  ])('takes %j for %d ms', (value, milliseconds) => {
    expect(toMs(value, 'timeout')).toBe(milliseconds)
  })

  it.each([
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    '',
    '-5m',
    'soon',
    '5 parsecs',
    '1e3',
    `${'9'.repeat(40)}y`,
    `${' '.repeat(200)}5m`,
    'NaN',
    'Infinity',
  ])('refuses %j', (value) => {
    expect(() => toMs(value, 'timeout')).toThrow(InvalidDurationError)
    expect(() => toMs(value, 'timeout')).toThrow(/^Option timeout: .* is not a duration\. Allowed: .*'5m'/)
  })

  it.each([null, undefined, true, {}, [], 5n, () => 1])('refuses what is neither number nor string: %o', (value) => {
    // @ts-expect-error: as a caller without types might
    expect(() => toMs(value, 'lease')).toThrow(/^Option lease: /)
  })

  it('gives a finite number that is not negative, or refuses', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.double(), fc.string(), fc.tuple(fc.float(), fc.constantFrom('s', 'd')).map(String)),
        (value) => {
          try {
            const milliseconds = toMs(value, 'x')
            return Number.isFinite(milliseconds) && milliseconds >= 0 && !Object.is(milliseconds, -0)
          } catch (error) {
            return error instanceof InvalidDurationError
          }
        },
      ),
    )
  })
})

describe('toWholeMs', () => {
  it.each([
    [0, 0],
    [0.1, 1],
    [1.5, 2],
    ['30s', 30_000],
    [Number.MAX_SAFE_INTEGER, 8e15],
  ])('takes %j for %d ms', (value, milliseconds) => {
    expect(toWholeMs(value, 'delay')).toBe(milliseconds)
    expect(Number.isNaN(new Date(Date.UTC(2200, 0) + milliseconds).getTime())).toBe(false)
  })

  it('refuses what is shorter than the minimum, before it rounds up', () => {
    expect(toWholeMs(1, 'period', 1)).toBe(1)
    for (const value of [0, 0.9, '0s', '0.5ms']) {
      expect(() => toWholeMs(value, 'period', 1)).toThrow(ConfigurationError)
      expect(() => toWholeMs(value, 'period', 1)).toThrow(/^Option period: .* Allowed: a duration of at least 1 ms\./)
    }
    expect(() => toWholeMs('soon', 'period', 1)).toThrow(InvalidDurationError)
  })
})
