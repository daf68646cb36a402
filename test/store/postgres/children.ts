/** Child processes that run a TypeScript file of this folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export { exitOf, says } from '../sqlite/children.ts'

export function startChild(file: string, ...args: readonly string[]): ChildProcess {
  const script = fileURLToPath(new URL(`./children/${file}`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  return child
}
