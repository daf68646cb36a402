/**
 * A Vitest reporter that says how the run ended in one line, `N passed, N failed` (`, N skipped` if any), the last
 * one the process prints.
 *
 * What keeps tests from running counts as a failure of its own: a file that doesn't load, a suite whose hook throws,
 * an error nobody handled. So `0 failed` means that the run was green.
 */
import { writeSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const line = `${closingLine(count(modules, unhandled))}\n`
    // Other reporters go on printing after this call, some of them asynchronously.
    process.once('exit', () => writeSync(1, line))
  }
}

export function closingLine({ passed, failed, skipped }: Counts): string {
  const always = `${passed} passed, ${failed} failed`
  return skipped === 0 ? always : `${always}, ${skipped} skipped`
}

function count(modules: readonly TestModule[], unhandled: readonly SerializedError[]): Counts {
  let passed = 0
  let skipped = 0
  let failed = unhandled.length
  for (const module of modules) {
    failed += module.errors().length
    for (const suite of module.children.allSuites()) failed += suite.errors().length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') passed += 1
      else if (state === 'failed') failed += 1
      else skipped += 1
    }
  }
  return { passed, failed, skipped }
}
