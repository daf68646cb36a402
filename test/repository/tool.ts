/**
 * Runs the repository's own tools as a developer would, on the repository or on a directory of planted mistakes: a
 * check is trusted here only after it has been seen to fail.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'

export const ROOT: string = join(import.meta.dirname, '../..')

export interface Ended {
  readonly status: number | null
  /** What it printed, both streams together. */
  readonly output: string
}

/** Runs a command to its end; without colours, without input, and killed when `timeoutMs` is over (status null). */
export function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly timeoutMs?: number; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? ROOT,
      env: { ...childEnvironment(), NO_COLOR: '1', ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 280_000,
      killSignal: 'SIGKILL',
    })
    let output = ''
    const keep = (chunk: string): void => {
      output += chunk
    }
    child.stdout.setEncoding('utf8').on('data', keep)
    child.stderr.setEncoding('utf8').on('data', keep)
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, output }))
  })
}

/** Runs a tool of node_modules/.bin. */
export function tool(name: string, args: readonly string[], cwd: string = ROOT): Promise<Ended> {
  return run(join(ROOT, 'node_modules/.bin', name), args, { cwd })
}

/** Fails, showing what was printed, unless the command ended well. */
export function expectClean({ status, output }: Ended): void {
  expect(status, output).toBe(0)
}

/** A new directory outside the repository with these files in it, gone when the test has ended. */
export function plant(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-planted-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  return directory
}

/** Without what the test runner and npm put there, which would change how children behave. */
function childEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env)
  const foreign = /^(VITEST|NODE_ENV$|FORCE_COLOR$|npm_(package|lifecycle|command|execpath))/
  return Object.fromEntries(inherited.filter(([name]) => !foreign.test(name)))
}
