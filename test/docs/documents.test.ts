import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { expectClean, ROOT } from '../repository/tool.ts'
import { freshDatabase, migratedDatabase } from './databases.ts'
import { printsAsTold, snippetsOf, sqlOf } from './snippets.ts'
import { runProgram, Workshop } from './workshop.ts'

function filesOf(directory: string, extension: string, recursive: boolean): readonly string[] {
  if (!existsSync(join(ROOT, directory))) return []
  return readdirSync(join(ROOT, directory), { recursive, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension))
    .map((path) => `${directory}/${path}`)
    .sort()
}

const documents = [...['README.md'].filter((path) => existsSync(join(ROOT, path))), ...filesOf('docs', '.md', true)]
const texts = documents.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')] as const)
const snippets = texts.flatMap(([path, text]) => snippetsOf(path, text))
const statements = texts.flatMap(([path, text]) => sqlOf(path, text))
const workshop = new Workshop()
workshop.write(snippets)
afterAll(() => workshop[Symbol.dispose]())

it('every snippet type-checks', () => {
  expect(workshop.typeErrors(snippets)).toEqual([])
})

/** Who asks for a database gets one. */
async function environmentOf(program: string): Promise<Readonly<Record<string, string>>> {
  return program.includes('DATABASE_URL') ? { DATABASE_URL: await freshDatabase() } : {}
}

for (const snippet of snippets.filter(({ runs }) => runs)) {
  it(`${snippet.document}:${snippet.line} runs`, async () => {
    const ended = await workshop.run(snippet, await environmentOf(snippet.text))
    expectClean(ended)
    if (snippet.prints === null) return
    const printed = ended.output.split('\n').slice(0, -1)
    expect(printsAsTold(snippet.prints, printed), `it printed:\n${ended.output}`).toBe(true)
  })
}

it('every statement is carried out', async () => {
  const client = new pg.Client(await migratedDatabase())
  await client.connect()
  onTestFinished(() => client.end())
  for (const { document, line, text } of statements) {
    await expect(client.query(text), `${document}:${line}`).resolves.toBeDefined()
  }
})

/** A folder's program is its run.ts. The demos have a test of their own, alone on the machine. */
const DEMOS: readonly string[] = ['examples/demo/run.ts', 'examples/fleet/run.ts']
const programs = [
  ...filesOf('examples', '.ts', false),
  ...filesOf('examples', '/run.ts', true).filter((path) => !DEMOS.includes(path)),
]
for (const example of programs) {
  it(`${example} runs`, async () => {
    expectClean(await runProgram(join(ROOT, example)))
  })
}
