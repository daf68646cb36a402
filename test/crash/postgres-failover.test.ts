/** Runs of workers that die go on elsewhere: by their lease, or at once on the same host. */
import { expect, it } from 'vitest'
import { Client, type QueueOptions } from '../../src/index.ts'
import { processIdentity } from '../../src/runtime/host.ts'
import { until } from '../api/engine/support.ts'
import { durableServer, FULL, freshSpec } from './postgres-server.ts'
import type { Child } from './processes.ts'
import { accountOf } from './queue-account.ts'
import { type QueuePlace, queuePlace } from './queue-place.ts'
import { quiet } from './quiet.ts'
import { specOf, storeOf } from './store-spec.ts'

const server = await durableServer()

const LEASE = '3s'
const HELD = 20
/** Longer than any test. */
const LONG_LEASE = '10m'
function queuesOf(lease: typeof LEASE | typeof LONG_LEASE): Record<string, QueueOptions> {
  return { open: { lease }, serial: { lease, globalConcurrency: 1 } }
}
/** How often a reaper looks that knows of no lease that ends. */
const REAPER_MS = 5_000
const SLACK_MS = 1_500

/** A worker that holds some runs; one of them fills its queue. */
async function holder(here: QueuePlace, queues: Record<string, QueueOptions>): Promise<Child> {
  const victim = await here.worker({ queues, holds: true })
  const options = (queue: string, n: number) => ({ queue, id: `${queue}.${n}` })
  const runs = Array.from({ length: HELD }, (_, n) => ({
    input: { ms: 0, hold: 'in a step' },
    options: options(n < HELD - 2 ? 'open' : 'serial', n),
  }))
  await here.client.startMany('task', runs)
  await victim.saysTimes(HELD - 1, 'holding')
  return victim
}

async function finish(here: QueuePlace, victim: Child, heir: Child): Promise<void> {
  for (const id of heir.lines.flatMap((line) => line.match(/^holding (.*)/)?.[1] ?? [])) heir.tell(`release ${id}`)
  const last = `serial.${HELD - 1}`
  await heir.says(`holding ${last}`)
  heir.tell(`release ${last}`)
  await here.drained(['open', 'serial'])
  const account = accountOf(here.journal.read())
  expect(account.faults).toEqual([])
  expect(account.peaks.get('serial')).toBe(1)
  expect([...account.begins.values()].filter((pids) => pids[0] === victim.pid && pids[1] === heir.pid)).toHaveLength(
    HELD - 1,
  )
}

it(`of a host that is gone: within 10 s, when the leases of ${LEASE} have ended`, async () => {
  const spec = freshSpec(server)
  const here = queuePlace(specOf(spec))
  const queues = queuesOf(LEASE)
  const victim = await holder(here, queues)
  const heir = await here.worker({ queues, holds: true })
  await server.sql(`update "${spec.schema}".processes set host = 'elsewhere' where pid = $1`, [victim.pid])
  await here.kill(victim)
  const killedAt = performance.now()
  await heir.saysTimes(HELD - 1, 'holding')
  const passedMs = performance.now() - killedAt
  console.log(`taken over from another host after ${passedMs.toFixed(0)} ms`)
  expect(passedMs).toBeLessThan(10_000)
  // A third of the lease may have passed since it was renewed.
  expect(passedMs).toBeGreaterThan(1_500)
  await finish(here, victim, heir)
}, 60_000)

it('of this host: by one that runs when its reaper looks, by one that starts at once', async () => {
  for (const starts of [false, true]) {
    const here = queuePlace(specOf(freshSpec(server)))
    const queues = queuesOf(LONG_LEASE)
    const victim = await holder(here, queues)
    const heir = here.load({ queues, holds: true })
    await heir.says('loaded')
    if (!starts) {
      heir.tell('launch')
      await heir.says('launched')
    }
    await here.kill(victim)
    const killedAt = performance.now()
    if (starts) heir.tell('launch')
    await heir.saysTimes(HELD - 1, 'holding')
    const passedMs = performance.now() - killedAt
    console.log(`taken over on this host after ${passedMs.toFixed(0)} ms`)
    expect(passedMs).toBeLessThan(SLACK_MS + (starts ? 1_000 : REAPER_MS))
    await finish(here, victim, heir)
  }
}, 60_000)

const ORPHANS = FULL ? 50_000 : 6_000
const BATCH = 1_000
const GHOST = 'ghost'

/** Claims of a process of this host that is dead. */
async function orphans(spec: string, pid: number): Promise<void> {
  const store = storeOf(spec)
  const client = new Client({ store, logger: quiet })
  await client.runs.list({ limit: 1 })
  await store.registerProcess({
    ...processIdentity(),
    ...{ owner: GHOST, pid, definitions: ['task'], queues: ['open'], version: null },
  })
  const starts = Array.from({ length: BATCH }, () => ({ input: { ms: 0 }, options: { queue: 'open' } }))
  for (let left = ORPHANS; left > 0; left -= BATCH) {
    await client.startMany('task', starts)
    const { runs } = await store.claim({
      ...{ owner: GHOST, version: null, tokens: Array.from({ length: BATCH }, (_, n) => `${GHOST} ${left}.${n}`) },
      definitions: [{ name: 'task', kind: 'workflow', maxRecoveries: 50, timeoutMs: null }],
      sources: [{ queue: 'open', leaseMs: 3_600_000, room: BATCH, lanes: null }],
    })
    expect(runs).toHaveLength(BATCH)
  }
  await client.close()
}

it(`${ORPHANS} runs of a dead process are ready in seconds, also if the server dies in the middle of it`, async () => {
  const spec = freshSpec(server)
  const here = queuePlace(specOf(spec))
  const dead = await here.worker({ queues: { open: {} } })
  await here.kill(dead)
  await orphans(here.store, dead.pid)
  const left = async (): Promise<number> => {
    const text = `select count(*)::int as n from "${spec.schema}".runs where status = 'PENDING' and owner = $1`
    const [row] = await server.sql(text, [GHOST])
    return Number(row?.['n'])
  }
  expect(await left()).toBe(ORPHANS)
  const heir = here.load({ queues: { open: { workerConcurrency: 1 } } })
  await heir.says('loaded')
  heir.tell('launch')
  const launchedAt = performance.now()
  await until(async () => (await left()) < 0.8 * ORPHANS, 'some of them')
  const atKill = await left()
  await server.kill()
  const killedAt = performance.now()
  await server.start()
  const startedAt = performance.now()
  await until(async () => (await left()) === 0, 'the last', 60_000)
  const tookMs = performance.now() - startedAt + killedAt - launchedAt
  console.log(`${ORPHANS} orphans, ${atKill} left when the server died: ready in ${tookMs.toFixed(0)} ms`)
  expect(atKill).toBeGreaterThan(0)
  expect(tookMs).toBeLessThan(30_000)
  await here.kill(heir)
}, 120_000)
