/**
 * Child processes that a test starts, listens to, freezes and kills. A child says one line of text at a time; what it
 * said is kept, so that nothing is missed whenever one asks. No child outlives its test.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class Child {
  readonly lines: string[] = []
  readonly ended: Promise<Ended>
  readonly #process: ChildProcess
  #listeners = new Set<() => void>()
  #over: Ended | undefined

  constructor(script: string, args: readonly string[], nodeArgs: readonly string[]) {
    const path = fileURLToPath(new URL(`./children/${script}`, import.meta.url))
    const program = isAbsolute(script) ? [script] : ['--import', 'tsx', path]
    this.#process = spawn(process.execPath, [...nodeArgs, ...program, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdin, stdout } = this.#process
    // Writing to a child that has been killed is no error of the test.
    stdin?.on('error', () => {})
    if (stdout !== null) {
      createInterface({ input: stdout }).on('line', (line) => {
        this.lines.push(line)
        this.#tell()
      })
    }
    this.ended = new Promise((resolve, reject) => {
      this.#process.once('error', reject)
      // Not `exit`: by `close` all it has said has been read.
      this.#process.once('close', (code, signal) => {
        this.#over = { code, signal }
        this.#tell()
        resolve(this.#over)
      })
    })
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error('the child did not start')
    return this.#process.pid
  }

  get alive(): boolean {
    return this.#over === undefined
  }

  tell(line: string): void {
    this.#process.stdin?.write(`${line}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }

  /** Stops it where it is, and resolves when the system says that it stands still. */
  async freeze(): Promise<void> {
    this.signal('SIGSTOP')
    while (!/^State:\s+T/m.test(readFileSync(`/proc/${this.pid}/status`, 'utf8'))) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** The first line that begins so; rejects if the child ends without it. */
  async says(start: string): Promise<string> {
    const [line] = await this.saysTimes(1, start)
    return line ?? ''
  }

  /** The first `count` lines that begin so. */
  async saysTimes(count: number, start = ''): Promise<readonly string[]> {
    for (;;) {
      const found = this.lines.filter((line) => line.startsWith(start))
      if (found.length >= count) return found.slice(0, count)
      if (!this.alive) throw new Error(`the child ended without saying "${start}": ${this.lines.slice(-5).join(' | ')}`)
      await new Promise<void>((resolve) => this.#listeners.add(resolve))
    }
  }

  #tell(): void {
    const listeners = this.#listeners
    this.#listeners = new Set()
    for (const listener of listeners) listener()
  }
}

/** Runs a TypeScript file of the folder `children`, or a JavaScript file that is given by its whole path. */
export function start(script: string, ...args: readonly string[]): Child {
  return startUnder([], script, ...args)
}

/** With options for Node. */
export function startUnder(nodeArgs: readonly string[], script: string, ...args: readonly string[]): Child {
  const child = new Child(script, args, nodeArgs)
  onTestFinished(async () => {
    if (child.alive) await child.kill()
  })
  return child
}
