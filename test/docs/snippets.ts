/**
 * The snippets of a Markdown document as the programs they claim to be.
 *
 * - ```` ```ts ```` is a module of its own: it must type-check, run and exit with 0.
 * - ```` ```ts no-run ```` is only type-checked.
 * - ```` ```ts file=name.ts ```` is a file which the other snippets of the document can import as './name.ts'.
 * - ```` ```sql run ```` is a statement, or several: each must be one that a database with the store's tables carries out.
 * - `// prints: text` says what the snippet prints there. With one such comment or more, the lines printed are exactly
 *   these, in this order; `...` stands for any text.
 */

export interface Snippet {
  /** The document, relative to the repository. */
  readonly document: string
  /** The line of its first line of code in the document, from 1. */
  readonly line: number
  /** Its name on disk; unique in its document. */
  readonly file: string
  readonly text: string
  readonly runs: boolean
  /** The lines it must print; null: it doesn't say. */
  readonly prints: readonly string[] | null
}

/** A fence of `sql run`. */
export interface SqlSnippet {
  readonly document: string
  readonly line: number
  readonly text: string
}

const OPENING = /^(?<indent>[ \t]*)(?<ticks>`{3,})(?<info>.*)$/

/** Throws for a fence that is never closed and for a word of an info string that means nothing here. */
export function snippetsOf(document: string, markdown: string): readonly Snippet[] {
  return fencesOf(document, markdown).flatMap(({ line, language, words, code }) =>
    language === 'ts' ? [snippet({ document, line }, words, code)] : [],
  )
}

export function sqlOf(document: string, markdown: string): readonly SqlSnippet[] {
  return fencesOf(document, markdown).flatMap(({ line, language, words, code }) =>
    language === 'sql' && words[0] === 'run' ? [{ document, line, text: code.join('\n') }] : [],
  )
}

interface Fence {
  readonly line: number
  readonly language: string
  readonly words: readonly string[]
  readonly code: readonly string[]
}

function fencesOf(document: string, markdown: string): readonly Fence[] {
  const lines = markdown.split(/\r?\n/)
  const found: Fence[] = []
  for (let at = 0; at < lines.length; at += 1) {
    const opening = OPENING.exec(lines[at] ?? '')?.groups
    if (opening === undefined) continue
    const { indent = '', ticks = '', info = '' } = opening
    const length = lines.slice(at + 1).findIndex((line) => line.trim() === ticks)
    if (length === -1) throw new Error(`${document}:${at + 1}: this fence is never closed`)
    const code = lines.slice(at + 1, at + 1 + length).map((line) => withoutIndent(line, indent))
    const [language = '', ...words] = info.trim().split(/\s+/)
    found.push({ line: at + 2, language, words, code })
    at += length + 1
  }
  return found
}

/** True if `printed` is what the snippet says it prints. */
export function printsAsTold(prints: readonly string[], printed: readonly string[]): boolean {
  return prints.length === printed.length && prints.every((told, n) => matches(told, printed[n] ?? ''))
}

function snippet(at: { document: string; line: number }, words: readonly string[], code: readonly string[]): Snippet {
  let file = `snippet-${at.line}.ts`
  let runs = true
  for (const word of words) {
    if (word === 'no-run') runs = false
    else if (/^file=[\w./-]+\.ts$/.test(word)) file = word.slice('file='.length)
    else throw new Error(`${at.document}:${at.line - 1}: ${word} means nothing; known are no-run and file=name.ts`)
  }
  const told = code.flatMap((line) => /\/\/ prints: (.*)$/.exec(line)?.[1]?.trimEnd() ?? [])
  const prints = told.length === 0 ? null : told
  return { ...at, file, text: `${code.join('\n')}\n`, runs: runs && words.every((word) => word === 'no-run'), prints }
}

function withoutIndent(line: string, indent: string): string {
  return line.startsWith(indent) ? line.slice(indent.length) : line.trimStart()
}

function matches(told: string, printed: string): boolean {
  const literal = told.split('...').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`).test(printed)
}
