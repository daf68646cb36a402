/**
 * A server that dies, that ends connections, that only reads for a while, under four workers in full swing: their runs
 * wait and go on, and nothing is done twice, as no process died and no lease was lost.
 */
import { chownSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { expect, it } from 'vitest'
import { until } from '../api/engine/support.ts'
import { durableServer, FULL, freshSpec } from './postgres-server.ts'
import { specOf } from './store-spec.ts'
import { fullSwing } from './swing.ts'

const server = await durableServer()

const RESTARTS = FULL ? 10 : 3
const TERMINATIONS = FULL ? 100 : 25
it(`the server dies ${RESTARTS} times under four busy workers`, async () => {
  const swing = await fullSwing(specOf(freshSpec(server)))
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    await setTimeout(Math.random() * 100)
    await server.kill()
    await setTimeout(Math.random() * 500)
    await server.start()
    await swing.progress(20)
  }
  expect(swing.troubles()).toBeGreaterThanOrEqual(swing.workers.length * RESTARTS)
  await swing.end(RESTARTS * 30, RESTARTS)
}, 240_000)

it(`${TERMINATIONS} connections are ended by the server, those that listen included`, async () => {
  const name = 'terminated'
  const swing = await fullSwing(specOf(freshSpec(server, { pool: { application_name: name } })))
  const terminate = async (condition: string, most = 1): Promise<number> => {
    const ended = await server.sql(
      `select pg_terminate_backend(pid) as done from (
        select pid from pg_stat_activity where application_name = $1 and ${condition} order by random() limit $2) victim`,
      [name, most],
    )
    return ended.filter(({ done }) => done === true).length
  }
  let [ended, listening] = [0, 0]
  for (let n = 0; n < TERMINATIONS; n += 1) {
    if (n % 5 === 0) listening += await terminate(`(query ilike 'listen%' or query = 'select 1')`)
    // Sometimes all at once; one in two while it does something for us.
    else if (n % 5 === 3) ended += await terminate('true', 100)
    else ended += await terminate(n % 2 === 0 ? `state <> 'idle'` : 'true')
    await setTimeout(Math.random() * 60)
    if (n % 8 === 0) await swing.progress(5)
  }
  expect(listening).toBeGreaterThan(TERMINATIONS / 25)
  expect(ended).toBeGreaterThan(TERMINATIONS / 3)
  await swing.end(TERMINATIONS * 2, TERMINATIONS)
}, 240_000)

it('the server only reads for a while, as one does that has become a standby', async () => {
  const spec = freshSpec(server)
  const swing = await fullSwing(specOf(spec))
  const [row] = await server.sql('show data_directory')
  const directory = String(row?.['data_directory'])
  await server.kill()
  const { uid, gid } = statSync(directory)
  const sign = join(directory, 'standby.signal')
  writeFileSync(sign, '')
  chownSync(sign, uid, gid)
  // Resolves only when the server writes again.
  const started = server.start()
  await until(async () => (await readsOnly()) === true, 'the server to read', 30_000)
  const before = swing.settled()
  await setTimeout(FULL ? 8_000 : 1_500)
  expect(swing.settled()).toBe(before)
  await server.sql('select pg_promote()')
  await started
  await swing.progress(40)
  await swing.end(100, 1)
}, 240_000)

it('transactions are read-only by default for a while, and for new sessions', async () => {
  const swing = await fullSwing(specOf(freshSpec(server)))
  await server.sql('alter system set default_transaction_read_only = on')
  await server.sql('select pg_reload_conf()')
  await swing.progress(30)
  await server.sql('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()')
  await swing.progress(30)
  await server.sql('alter system reset default_transaction_read_only')
  await server.sql('select pg_reload_conf()')
  await swing.end(100, 1)
}, 240_000)

async function readsOnly(): Promise<boolean | undefined> {
  const client = new pg.Client({ connectionString: server.url })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query('select pg_is_in_recovery() as reads')
    return rows[0].reads
  } catch {
    return undefined
  } finally {
    await client.end().catch(() => {})
  }
}
