/** Workers whose clocks are ten minutes apart, neither of them that of the server: what is due is so by the server's. */
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { until } from '../api/engine/support.ts'
import { durableServer, freshSpec } from './postgres-server.ts'
import type { Child } from './processes.ts'
import { startShifted } from './queue-children.ts'
import { type Claim, claimsOf } from './queue-claims.ts'
import { type QueuePlace, queuePlace } from './queue-place.ts'
import { specOf } from './store-spec.ts'

const server = await durableServer()

const SHIFT_MS = 5 * 60_000
const LEASE_MS = 1_500
const SLACK_MS = 1_500
const queues = { open: { lease: LEASE_MS } }

async function launch(here: QueuePlace, shiftMs: number, mute = false): Promise<Child> {
  return await here.worker({ queues, holds: true, shiftMs, ...(mute ? { mute, leaseMs: LEASE_MS } : {}) })
}

async function claims({ client }: QueuePlace): Promise<readonly Claim[]> {
  return await claimsOf(client, ['open'])
}

it.each([
  ['behind', 'ahead', -SHIFT_MS],
  ['ahead', 'behind', SHIFT_MS],
])('the lease of a worker that is %s is not ended early by one that is %s', async (_, _other, shiftMs) => {
  const here = queuePlace(specOf(freshSpec(server)))
  const owner = await launch(here, shiftMs)
  await here.client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'open', id: 'open.kept' })
  await owner.says('holding open.kept')
  const heldAt = performance.now()
  const other = await launch(here, -shiftMs)
  const look = async (): Promise<boolean> => {
    other.tell('recover')
    await setTimeout(50)
    return performance.now() - heldAt > 3 * LEASE_MS
  }
  await until(look, 'three leases', 30_000)
  owner.tell('release open.kept')
  expect(await here.client.handle('open.kept').result()).toBe(owner.pid)
  expect((await claims(here)).map(({ outcome }) => outcome)).toEqual(['succeeded'])

  // One that renews nothing loses it at the end of its lease, not before, and not long after.
  owner.tell('shutdown 0')
  await owner.ended
  const mute = await launch(here, shiftMs, true)
  await here.freeze(other)
  await here.client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'open', id: 'open.lost' })
  await mute.says('holding open.lost')
  here.lost('open.lost', mute)
  other.signal('SIGCONT')
  const inherited = async (): Promise<boolean> => {
    other.tell('recover')
    await setTimeout(50)
    return other.lines.includes('holding open.lost')
  }
  await until(inherited, 'the end of the lease', 30_000)
  const lost = (await claims(here)).find(({ runId, outcome }) => runId === 'open.lost' && outcome !== 'running')
  expect(lost?.outcome).toBe('crashed')
  const lastedMs = (lost?.to ?? 0) - (lost?.from ?? 0)
  expect(lastedMs).toBeGreaterThanOrEqual(LEASE_MS)
  expect(lastedMs).toBeLessThan(LEASE_MS + SLACK_MS)
  other.tell('release open.lost')
})

it('delays and sleeps end by the time of the server, whoever starts them and whoever looks', async () => {
  const DELAY_MS = 1_200
  const here = queuePlace(specOf(freshSpec(server)))
  await Promise.all([launch(here, -SHIFT_MS), launch(here, SHIFT_MS)])
  const delay = String(DELAY_MS)
  const producers = [-SHIFT_MS, SHIFT_MS].map((shiftMs, n) =>
    startShifted(shiftMs, 'producer', here.store, here.log, `delayed-${n}`, 'open', delay),
  )
  for (const producer of producers) producer.tell('more 8')
  const sleepers = Array.from({ length: 8 }, (_, n) => ({
    input: { ms: 0, sleepMs: DELAY_MS },
    options: { queue: 'open', id: `open.sleeping-${n}` },
  }))
  await here.client.startMany('task', sleepers)
  for (const producer of producers) await producer.says('enough')
  await here.drained(['open'])

  const { runs } = await here.client.runs.list({ queue: 'open' })
  const pids = new Set<number>()
  for (const { id, createdAt, startedAt = new Date(0) } of runs) {
    const begins = here.journal.of('begin', id)
    for (const { pid } of begins) pids.add(pid)
    const [first, second] = begins.map(({ value }) => Number(value))
    const waitedMs = id.includes('delayed')
      ? startedAt.getTime() - createdAt.getTime()
      : (second ?? Number.POSITIVE_INFINITY) - (first ?? 0)
    // The clock of the journal and that of the server tick in different milliseconds.
    expect([id, waitedMs > DELAY_MS - 3 && waitedMs < DELAY_MS + SLACK_MS, waitedMs]).toEqual([id, true, waitedMs])
  }
  expect(runs).toHaveLength(24)
  // Both were there to look.
  expect(pids.size).toBe(2)
})
