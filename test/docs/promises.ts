/** A page that names a test for each of its numbered statements: `` `test/file.test.ts`: "the test's title" ``. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Statement {
  readonly number: number
  readonly text: string
}
export interface NamedTest {
  readonly file: string
  /** The title, or a part of it. */
  readonly title: string
}

/** The items of the page's numbered lists, to the next item or heading. */
export function statementsOf(markdown: string): readonly Statement[] {
  const items = markdown.matchAll(/^(?<number>\d+)\. (?<text>[\s\S]*?)(?=^\d+\. |^#|(?![\s\S]))/gm)
  return [...items].map(({ groups }) => ({ number: Number(groups?.['number']), text: groups?.['text'] ?? '' }))
}

export function namedTests(text: string): readonly NamedTest[] {
  const named = text.matchAll(/`(?<file>(?:src|test)\/[\w./-]+\.ts)`:\s+"(?<title>[^"]+)"/g)
  return [...named].map(({ groups }) => ({
    file: groups?.['file'] ?? '',
    title: (groups?.['title'] ?? '').replaceAll(/\s+/g, ' '),
  }))
}

/** Those that are named and not there. */
export function unknownTests(root: string, markdown: string): readonly string[] {
  const unknown = namedTests(markdown).filter(({ file, title }) => {
    const path = join(root, file)
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(title)
  })
  return unknown.map(({ file, title }) => `${file}: ${title}`)
}
