/** A network between four workers and their server that cuts, swallows, or has room for little. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { Engine, queue } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { until } from '../api/engine/support.ts'
import { Relay } from '../store/postgres/relay.ts'
import { durableServer, FULL, freshSpec } from './postgres-server.ts'
import type { Child } from './processes.ts'
import { accountOf } from './queue-account.ts'
import { queuePlace } from './queue-place.ts'
import { taskWorkflow } from './queue-work.ts'
import { quiet } from './quiet.ts'
import { specOf } from './store-spec.ts'
import { fullSwing } from './swing.ts'

const server = await durableServer()

/** A statement that is not answered is given up after 10 s. */
const LEAVES_WITHIN_MS = 15_000
const CUTS = FULL ? 200 : 40
/** As the driver sends it; what begins a transaction has the word, too. */
const COMMIT = 'COMMIT\0'

it(`${CUTS} connections are cut between a COMMIT and its answer: what was committed is known to be`, async () => {
  const relay = await Relay.open(server.url)
  const swing = await fullSwing(specOf(freshSpec(server, { url: relay.url })))
  for (let cut = 0; cut < CUTS; cut += 1) {
    await setTimeout(Math.random() * 30)
    relay.cutAfterNext(COMMIT)
    const producing = swing.progress(cut % 4 === 0 ? 5 : 1)
    await until(() => !relay.isToCut, 'a COMMIT', 30_000)
    await producing
  }
  await swing.end(CUTS * 2, CUTS)
}, 240_000)

/** A worker that has run something, and has nothing more to do. */
async function idleWorker(spec: string): Promise<Child> {
  const here = queuePlace(spec)
  const worker = await here.worker({ queues: { open: {} } })
  const ran = await here.client.start('task', { ms: 0 }, { queue: 'open', id: 'open.0' })
  await ran.result()
  return worker
}

it('the network swallows everything for a while: shutdown returns in time, and other workers’ runs go on', async () => {
  const relay = await Relay.open(server.url)
  const swing = await fullSwing(specOf(freshSpec(server, { url: relay.url })))
  const leaving = await idleWorker(specOf(freshSpec(server, { url: relay.url })))
  relay.silence()
  const silentAt = performance.now()
  const before = swing.troubles()
  leaving.tell('shutdown 1000')
  await until(() => swing.troubles() >= before + swing.workers.length, 'all to notice', 30_000)
  const noticedMs = performance.now() - silentAt
  expect(await leaving.ended).toEqual({ code: 0, signal: null })
  const leftMs = performance.now() - silentAt
  expect(leftMs).toBeLessThan(LEAVES_WITHIN_MS)
  relay.heal()
  await swing.progress(40)
  console.log(
    `half-open connections: noticed after ${noticedMs.toFixed(0)} ms, left after ${leftMs.toFixed(0)} ms, all well after ${(performance.now() - silentAt).toFixed(0)} ms`,
  )
  await swing.end(100, 1)
}, 240_000)

it('a pool of two, of which a long transaction of the user’s has one', async () => {
  const spec = freshSpec(server)
  const here = queuePlace(specOf(spec))
  const pool = new pg.Pool({ connectionString: server.url, max: 2 })
  onTestFinished(() => pool.end())
  const { schema = '' } = spec
  const task = taskWorkflow({ journal: here.journal, begun: () => {}, hold: () => Promise.resolve() })
  const engine = new Engine({
    store: postgres(pool, { schema }),
    definitions: [task],
    queues: [queue('open'), queue('wide', { globalConcurrency: 4 })],
    logger: quiet,
  })
  onTestFinished(() => engine.shutdown())
  await engine.launch()
  const tx = await pool.connect()
  try {
    await tx.query('begin')
    await engine.start(task, { ms: 0 }, { queue: 'wide', id: 'wide.last', tx })
    const runs = Array.from({ length: 60 }, (_, n) => {
      const lane = n % 2 === 0 ? 'open' : 'wide'
      return { input: { ms: 4 }, options: { queue: lane, id: `${lane}.${n}` } }
    })
    const handles = await engine.startMany(task, runs)
    await Promise.all(handles.map((run) => run.result({ timeout: '30s' })))
    expect(await engine.runs.get('wide.last')).toBeUndefined()
    await tx.query('commit')
  } finally {
    tx.release()
  }
  await engine.handle('wide.last').result({ timeout: '30s' })
  const account = accountOf(here.journal.read())
  expect([account.faults, account.repeatedEffects, account.ended.size]).toEqual([[], 0, 61])
}, 60_000)
