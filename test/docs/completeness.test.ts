import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from '../repository/tool.ts'

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const all = (text: string, pattern: RegExp): readonly string[] =>
  [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ''))].sort()

/** Names of the properties that an interface of the file declares itself. */
function properties(path: string, name: string): readonly string[] {
  const body = new RegExp(`export interface ${name}\\b[^{]*{\\n(?<body>[\\s\\S]*?)\\n}`).exec(read(path))?.groups?.[
    'body'
  ]
  return all(body ?? '', /^ {2}readonly (\w+)\??:/gm)
}

it('every reason of explain says what to do', () => {
  const reasons = all(read('src/api/explanation.ts'), /readonly type: '(\w+)'/g)
  expect(reasons.length).toBeGreaterThan(10)
  expect(all(read('docs/why-not-running.md'), /^\| `(\w+)` \|/gm)).toEqual(reasons)
})

it.each([
  ['src/api/queue.ts', 'QueueOptions'],
  ['src/api/queue-knobs.ts', 'QueueKnobOptions'],
])('every option of a queue is in its reference: %s', (path, name) => {
  const reference = read('docs/queues.md').split('## Reference')[1] ?? ''
  const options = properties(path, name)
  expect(options.length).toBeGreaterThan(5)
  expect(options.filter((option) => !reference.includes(`\`${option}\``))).toEqual([])
})

it('every option of a start is in a guide', () => {
  const guides = ['workflows', 'queues', 'kv-and-effects', 'transactions']
    .map((name) => read(`docs/${name}.md`))
    .join('\n')
  const options = properties('src/api/start-options.ts', 'StartOptions')
  expect(options.length).toBeGreaterThan(5)
  expect(options.filter((option) => !guides.includes(`\`${option}`))).toEqual([])
})
