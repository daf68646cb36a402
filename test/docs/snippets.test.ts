import { describe, expect, it, onTestFinished } from 'vitest'
import { printsAsTold, type Snippet, snippetsOf } from './snippets.ts'
import { Workshop } from './workshop.ts'

const FENCE = '```'

/** A document out of fences, each its info string and its code. */
function documentOf(...fences: readonly (readonly [info: string, code: string])[]): readonly Snippet[] {
  const markdown = fences.map(([info, code]) => `Text.\n\n${FENCE}${info}\n${code}\n${FENCE}\n`).join('\n')
  return snippetsOf('docs/page.md', markdown)
}

function only(snippets: readonly Snippet[]): Snippet {
  const [first, ...others] = snippets
  if (first === undefined || others.length > 0) throw new Error(`one snippet expected, not ${snippets.length}`)
  return first
}

function workshopWith(snippets: readonly Snippet[]): Workshop {
  const workshop = new Workshop()
  onTestFinished(() => workshop[Symbol.dispose]())
  workshop.write(snippets)
  return workshop
}

describe('snippets of a document', () => {
  it('are its ts fences, with their lines', () => {
    const found = documentOf(['sh', 'npm ci'], ['ts', 'a()'], ['tsx', 'b()'], ['', 'c()'], ['ts no-run', 'd()'])
    expect(found.map(({ line, text, runs }) => [line, text, runs])).toEqual([
      [10, 'a()\n', true],
      [28, 'd()\n', false],
    ])
  })

  it('may be indented, as in a list', () => {
    const text = `1. Write:\n\n   ${FENCE}ts\n   if (a) {\n     b()\n   }\n   ${FENCE}\n`
    expect(only(snippetsOf('README.md', text)).text).toBe('if (a) {\n  b()\n}\n')
  })

  it('hold shorter fences as text', () => {
    const text = `${FENCE}\`md\n${FENCE}ts\na()\n${FENCE}\n${FENCE}\`\n`
    expect(snippetsOf('README.md', text)).toEqual([])
  })

  it('say what is wrong with a fence', () => {
    expect(() => snippetsOf('README.md', `\n${FENCE}ts\na()\n`)).toThrow('README.md:2: this fence is never closed')
    expect(() => documentOf(['ts norun', 'a()'])).toThrow('docs/page.md:3: norun means nothing')
  })

  it('tell what they print', () => {
    const code = "console.log('a') // prints: a\nconsole.log(1.5)\n// prints: 1.5"
    expect(only(documentOf(['ts', code])).prints).toEqual(['a', '1.5'])
    expect(printsAsTold(['took ... ms'], ['took 12 ms'])).toBe(true)
    expect(printsAsTold(['1.5'], ['1x5'])).toBe(false)
    expect(printsAsTold(['a'], ['a', 'b'])).toBe(false)
  })
})

describe('the workshop', () => {
  it('reports type errors at their place in the document', () => {
    const found = documentOf(['ts', 'const ok = 1'], ['ts no-run', "const ok = 1\nconst wrong: number = 'text'"])
    const errors = workshopWith(found).typeErrors(found)
    expect(errors).toEqual([expect.stringContaining("docs/page.md:11: Type 'string' is not assignable")])
  })

  it('runs a snippet as a module that sees the files of its document, away from the repository', async () => {
    const found = documentOf(
      ['ts file=greeting.ts', "export const greeting: string = 'hello'"],
      ['ts', "import { greeting } from './greeting.ts'\nconsole.log(await Promise.resolve(greeting), process.cwd())"],
    )
    const workshop = workshopWith(found)
    expect(workshop.typeErrors(found)).toEqual([])
    const ended = await workshop.run(only(found.filter(({ runs }) => runs)))
    expect(ended).toEqual({ status: 0, output: expect.stringMatching(/^hello \S+perdure-program-\w+\n$/) })
  })

  it('fails a snippet that throws', async () => {
    const found = documentOf(['ts', "throw new Error('as planted')"])
    const ended = await workshopWith(found).run(only(found))
    expect(ended).toEqual({ status: 1, output: expect.stringContaining('as planted') })
  })

  it('knows the package by its name', async () => {
    const found = documentOf(['ts', "import { memory } from 'perdure/memory'\nconsole.log(typeof memory)"])
    const workshop = workshopWith(found)
    expect(workshop.typeErrors(found)).toEqual([])
    expect(await workshop.run(only(found))).toEqual({ status: 0, output: 'function\n' })
  })
})
