import { describe, expect, it } from 'vitest'
import { InvalidIdError } from '../../src/core/errors.ts'
import { checkName, checkNewRunId, checkOwnName, checkPrefix, checkRunId } from '../../src/core/names.ts'

const refused = (check: () => void): string => {
  try {
    check()
  } catch (error) {
    if (error instanceof InvalidIdError) return error.problem
    throw error
  }
  return ''
}

const NEVER: readonly (readonly [unknown, RegExp])[] = [
  ['', /empty/],
  ['a\nb', /control character/],
  ['a\0', /control character/],
  ['a\u0085', /control character/],
  ['\ud83d', /surrogate/],
  ['a\udc00b', /surrogate/],
  ['x'.repeat(256), /longer than \d+ bytes/],
  ['ü'.repeat(128), /longer than \d+ bytes/],
  [5, /it is number/],
  [null, /it is null/],
  [undefined, /it is undefined/],
]

describe('names', () => {
  it.each(NEVER)('%j is none', (name, problem) => {
    for (const check of [checkName, checkOwnName]) {
      expect(refused(() => check('queue name', name))).toMatch(problem)
    }
    if (name !== '') expect(refused(() => checkPrefix('prefix', name))).toMatch(problem)
  })

  it.each(['x', ' ', 'x'.repeat(255), 'ü'.repeat(127), '🙂', '%', "'", '__proto__', 'a~b'])('%j is one', (name) => {
    expect(refused(() => checkName('key', name))).toBe('')
    expect(refused(() => checkOwnName('key', name))).toBe('')
  })

  it("what begins with 'perdure:' is the library's", () => {
    for (const check of [checkOwnName, checkPrefix]) {
      expect(refused(() => check('key', 'perdure:x'))).toMatch(/reserved for the library/)
      expect(refused(() => check('key', 'perdure:'))).toMatch(/reserved for the library/)
      expect(refused(() => check('key', 'perdure'))).toBe('')
      expect(refused(() => check('key', 'Perdure:x'))).toBe('')
    }
    expect(refused(() => checkName('step', 'perdure:x'))).toBe('')
  })

  it('a prefix may be empty', () => {
    expect(refused(() => checkPrefix('prefix', ''))).toBe('')
  })

  it('ids of runs are shorter, and a new one has no tilde', () => {
    expect(refused(() => checkRunId('x'.repeat(128)))).toBe('')
    expect(refused(() => checkRunId('x'.repeat(129)))).toMatch(/128 bytes/)
    expect(refused(() => checkRunId('a~1'))).toBe('')
    expect(refused(() => checkNewRunId('a~1'))).toMatch(/children/)
  })
})
