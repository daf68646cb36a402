/**
 * Where snippets become programs: a directory inside the repository, so that `perdure` is src/ (by the `paths` of
 * tsconfig.json, for the compiler and at run time alike) and other packages are those of node_modules. Against the
 * source, because a failing line should be one of ours; test/package shows that what is published is the same.
 *
 * A program runs in a process of its own, in an empty directory outside of the repository.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { type Ended, ROOT, run } from '../repository/tool.ts'
import type { Snippet } from './snippets.ts'

const RUN_TIMEOUT_MS = 60_000
const SNIPPETS = { noUnusedLocals: false, noUnusedParameters: false, noPropertyAccessFromIndexSignature: false }

export class Workshop implements Disposable {
  readonly #directory: string

  constructor() {
    mkdirSync(join(ROOT, '.snippets'), { recursive: true })
    this.#directory = mkdtempSync(join(ROOT, '.snippets', 'run-'))
  }

  write(snippets: readonly Snippet[]): void {
    for (const snippet of snippets) {
      const path = this.#path(snippet)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, snippet.text)
    }
  }

  /** What the compiler says about snippets that have been written, each headed by its place in the document. */
  typeErrors(snippets: readonly Snippet[]): readonly string[] {
    const byPath = new Map(snippets.map((snippet) => [this.#path(snippet), snippet]))
    const program = ts.createProgram([...byPath.keys()], compilerOptions())
    return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
      const text = ts.flattenDiagnosticMessageText(messageText, '\n')
      if (file === undefined) return text
      const line = file.getLineAndCharacterOfPosition(start ?? 0).line
      const snippet = byPath.get(file.fileName)
      const place =
        snippet === undefined ? `${file.fileName}:${line + 1}` : `${snippet.document}:${snippet.line + line}`
      return `${place}: ${text}`
    })
  }

  run(snippet: Snippet, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return runProgram(this.#path(snippet), env)
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #path(snippet: Snippet): string {
    return join(this.#directory, snippet.document.replace(/\.md$/, ''), snippet.file)
  }
}

/** Runs a TypeScript file against src/, in an empty directory; killed when it takes over a minute. */
export async function runProgram(path: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const cwd = mkdtempSync(join(tmpdir(), 'perdure-program-'))
  try {
    const tsx = join(ROOT, 'node_modules/tsx/dist/cli.mjs')
    const args = [tsx, '--tsconfig', join(ROOT, 'tsconfig.json'), path]
    return await run(process.execPath, args, { cwd, timeoutMs: RUN_TIMEOUT_MS, env })
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
}

/** Those of the repository, but a snippet may leave unused what it shows, and reads its environment as users do. */
function compilerOptions(): ts.CompilerOptions {
  const config = join(ROOT, 'tsconfig.json')
  const { options } = ts.parseJsonConfigFileContent(ts.readConfigFile(config, ts.sys.readFile).config, ts.sys, ROOT)
  return { ...options, configFilePath: config, ...SNIPPETS }
}
