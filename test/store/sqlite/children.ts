/** Child processes that run a TypeScript file of this folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

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

/** The ids that a child of claim.ts says it claimed. */
export async function claimsOf(child: ChildProcess): Promise<readonly string[]> {
  const ids: unknown = JSON.parse(await says(child, '\n'))
  if (!Array.isArray(ids)) throw new Error('the child said something else')
  return ids.map(String)
}

/** The exit code of the child, when it has ended. */
export async function exitOf(child: ChildProcess): Promise<number | null> {
  child.stdout?.resume()
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

/** What the child has written from now on, as soon as the words are among it. */
export async function says(child: ChildProcess, words: string): Promise<string> {
  let output = ''
  for await (const chunk of child.stdout?.iterator({ destroyOnReturn: false }) ?? []) {
    output += String(chunk)
    if (output.includes(words)) return output
  }
  throw new Error(`the child ended without saying ${words}: ${output}`)
}
