import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { breaches } from './house-rules.ts'
import { ROOT } from './tool.ts'

function sources(directory: string): readonly string[] {
  return readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' })
    .map((path) => `${directory}/${path.replaceAll('\\', '/')}`)
    .filter((path) => /\.[jt]s$/.test(path))
}

const rulesOf = (path: string, text: string): readonly string[] => breaches(path, text).map(({ rule }) => rule)

describe('the rules of the house', () => {
  it.each(['src', 'test', 'scripts', 'bench', 'examples'])('are kept in %s', (directory) => {
    const found = sources(directory).flatMap((path) => breaches(path, readFileSync(join(ROOT, path), 'utf8')))
    expect(found).toEqual([])
  })

  it.each([
    'Date.now()',
    'globalThis.Date.now()',
    'const now = Date.now',
    'new Date()',
    'new Date',
    'Date()',
    'AbortSignal.timeout(5)',
    'process.hrtime.bigint()',
  ])('refuse real time in src: %s', (text) => {
    expect(rulesOf('src/api/x.ts', text)).toContain('clock')
    expect(rulesOf('src/core/clock.ts', text)).toEqual([])
    expect(rulesOf('test/x.ts', text)).toEqual([])
  })

  it('refuse randomness in src', () => {
    expect(rulesOf('src/api/x.ts', 'Math.random()')).toEqual(['random'])
    expect(rulesOf('src/core/random.ts', 'Math.random()')).toEqual([])
  })

  it('allow instants as values', () => {
    expect(rulesOf('src/api/x.ts', 'new Date(5); x instanceof Date; Date.parse(y)')).toEqual([])
  })

  it('refuse a cast by way of unknown', () => {
    expect(rulesOf('src/api/x.ts', 'const x = y as unknown as string')).toEqual(['double-cast'])
    expect(rulesOf('src/api/x.ts', 'const x = (y as unknown) as string')).toEqual(['double-cast'])
    expect(rulesOf('src/api/x.ts', 'const x = y as unknown')).toEqual([])
  })

  it('refuse functions of over 70 lines, not counting the tests declared in them', () => {
    const lines = (count: number): string => 'x()\n'.repeat(count)
    const tests = `it('x', () => {\n${lines(60)}})\n`.repeat(5)
    expect(rulesOf('src/x.ts', `function x() {\n${lines(69)}}`)).toEqual(['long-function'])
    expect(rulesOf('src/x.ts', `function x() {\n${lines(68)}}`)).toEqual([])
    expect(rulesOf('test/x.ts', `it('x', () => {\n${lines(69)}})`)).toEqual(['long-function'])
    expect(rulesOf('test/x.ts', `describe('x', () => {\n${tests}})`)).toEqual([])
    expect(rulesOf('test/x.ts', `describe('x', () => {\n${lines(70)}})`)).toEqual(['long-function'])
  })
})
