import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { expectClean, ROOT } from '../repository/tool.ts'
import { printsAsTold, snippetsOf } from './snippets.ts'
import { runProgram, Workshop } from './workshop.ts'

function filesOf(directory: string, extension: string, recursive: boolean): readonly string[] {
  if (!existsSync(join(ROOT, directory))) return []
  return readdirSync(join(ROOT, directory), { recursive, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension))
    .map((path) => `${directory}/${path}`)
    .sort()
}

const documents = [...['README.md'].filter((path) => existsSync(join(ROOT, path))), ...filesOf('docs', '.md', true)]
const snippets = documents.flatMap((path) => snippetsOf(path, readFileSync(join(ROOT, path), 'utf8')))
const workshop = new Workshop()
workshop.write(snippets)
afterAll(() => workshop[Symbol.dispose]())

it('every snippet type-checks', () => {
  expect(workshop.typeErrors(snippets)).toEqual([])
})

for (const snippet of snippets.filter(({ runs }) => runs)) {
  it(`${snippet.document}:${snippet.line} runs`, async () => {
    const ended = await workshop.run(snippet)
    expectClean(ended)
    if (snippet.prints === null) return
    const printed = ended.output.split('\n').slice(0, -1)
    expect(printsAsTold(snippet.prints, printed), `it printed:\n${ended.output}`).toBe(true)
  })
}

/** A folder's program is its run.ts. The demo has a test of its own, alone on the machine. */
const programs = [
  ...filesOf('examples', '.ts', false),
  ...filesOf('examples', '/run.ts', true).filter((path) => path !== 'examples/demo/run.ts'),
]
for (const example of programs) {
  it(`${example} runs`, async () => {
    expectClean(await runProgram(join(ROOT, example)))
  })
}
