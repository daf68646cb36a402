import { describe, expect, test } from 'vitest'
import { sha256Hex, timeOrderedIds } from '../../src/core/ids.ts'
import { realRandom } from '../../src/core/random.ts'

const idsAt = (instants: readonly number[]) => {
  let at = 0
  return timeOrderedIds({ now: () => instants[Math.min(at++, instants.length - 1)] ?? 0 }, realRandom)
}

describe('time-ordered ids', () => {
  test('are UUIDv7 of the instant they were made (RFC 9562)', () => {
    const id = idsAt([Date.UTC(2026, 0, 2)]).next()
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(Date.UTC(2026, 0, 2))
  })

  test('Q8: ascend within one millisecond, more of them than its counter holds', () => {
    const ids = idsAt([1_000])
    const made = Array.from({ length: 10_000 }, () => ids.next())
    expect([...made].sort()).toEqual(made)
    expect(new Set(made).size).toBe(10_000)
  })

  test('Q8: ascend when the clock goes back', () => {
    const ids = idsAt([5_000, 4_000, 1, 5_000, 5_001])
    const made = Array.from({ length: 5 }, () => ids.next())
    expect([...made].sort()).toEqual(made)
  })

  test('differ between makers of the same millisecond', () => {
    const made = Array.from({ length: 100 }, () => idsAt([1_000]).next())
    expect(new Set(made).size).toBe(100)
  })
})

test('digests are of the UTF-8 bytes (FIPS 180-4, example of "abc")', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(sha256Hex('é')).toBe('4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
})
