import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { plant, ROOT } from '../repository/tool.ts'
import { namedTests, statementsOf, unknownTests } from './promises.ts'

const PAGE = 'docs/reference/durable-queues.md'
const page = readFileSync(join(ROOT, PAGE), 'utf8')

it('every promise about queues names a test that exists', () => {
  const statements = statementsOf(page)
  expect(statements.map(({ number }) => number)).toEqual(statements.map((_, index) => index + 1))
  expect(statements.length).toBeGreaterThan(20)
  expect(statements.filter(({ text }) => namedTests(text).length === 0)).toEqual([])
  expect(unknownTests(ROOT, page)).toEqual([])
})

it('tests that are gone, and files that are, are found', () => {
  const root = plant({ 'test/a.test.ts': "it('keeps what it promises', () => {})\n" })
  const text = [
    '1. **One.** True.\n   `test/a.test.ts`: "keeps what it promises"',
    '2. **Two.** True.\n   `test/a.test.ts`: "keeps what\n   it promised"\n   `test/b.test.ts`: "keeps what it promises"',
    '3. **Three.** True.',
  ].join('\n')
  expect(existsSync(join(root, 'test/a.test.ts'))).toBe(true)
  expect(statementsOf(text).map(({ number, text: of }) => [number, namedTests(of).length])).toEqual([
    [1, 1],
    [2, 2],
    [3, 0],
  ])
  expect(unknownTests(root, text)).toEqual([
    'test/a.test.ts: keeps what it promised',
    'test/b.test.ts: keeps what it promises',
  ])
})
