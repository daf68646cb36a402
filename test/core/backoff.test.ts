import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs } from '../../src/core/backoff.ts'
import type { Random } from '../../src/core/random.ts'

const always = (value: number): Random => ({ next: () => value, fill: (bytes) => bytes })
const plain = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0 }

describe('backoffMs', () => {
  it('grows by the factor, up to the maximum', () => {
    const waits = [1, 2, 3, 6, 7, 8, 10_000].map((attempt) => backoffMs(plain, attempt, always(0.5)))
    expect(waits).toEqual([100, 200, 400, 3_200, 5_000, 5_000, 5_000])
  })

  it('spreads evenly to both sides, never above the maximum', () => {
    const jittered = { ...plain, jitter: 0.2 }
    expect([0, 0.25, 0.5, 0.999_999].map((random) => backoffMs(jittered, 1, always(random)))).toEqual([
      80, 90, 100, 120,
    ])
    expect(backoffMs(jittered, 20, always(0.999))).toBe(5_000)
    expect(backoffMs(jittered, 20, always(0))).toBe(4_000)
  })

  it('is a whole number within bounds, whatever it is asked', () => {
    const settings = fc.record({
      baseMs: fc.oneof(fc.nat(), fc.constant(0)),
      factor: fc.double({ min: 1, max: 1e6, noNaN: true }),
      maxMs: fc.oneof(fc.nat(), fc.constantFrom(Number.POSITIVE_INFINITY, Number.MAX_VALUE)),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(
        settings,
        fc.oneof(fc.nat(), fc.integer({ min: 1, max: 2 ** 53 - 1 })),
        randoms,
        (backoff, attempt, random) => {
          const wait = backoffMs(backoff, attempt, always(random))
          return Number.isSafeInteger(wait) && wait >= 0 && wait <= backoff.maxMs
        },
      ),
    )
  })
})
