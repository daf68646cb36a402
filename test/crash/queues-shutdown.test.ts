/** Workers that leave while others go on: what they hold stays theirs, then it is handed back; nothing is left behind. */
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Engine, queue } from '../../src/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { until } from '../api/engine/support.ts'
import { accountOf } from './queue-account.ts'
import { claimsOf, mostAtOnce } from './queue-claims.ts'
import { type QueuePlace, queuePlace } from './queue-place.ts'
import { taskWorkflow } from './queue-work.ts'
import { quiet } from './quiet.ts'

const LEASE_MS = 600

async function outcomes({ client }: QueuePlace, id: string): Promise<readonly string[]> {
  return (await client.runs.attempts(id)).map(({ outcome }) => outcome)
}

async function startHeld({ client }: QueuePlace, lane: string, ...numbers: readonly number[]): Promise<void> {
  for (const n of numbers) await client.start('task', { ms: 0, hold: 'in a step' }, { queue: lane, id: `${lane}.${n}` })
}

it('a process that drains takes nothing any more, not what a new one of the same id hands back (D-03, W20)', async () => {
  const here = queuePlace()
  const { client, journal } = here
  const settings = { queues: { items: { workerConcurrency: 20 } }, executorId: 'web-1', holds: true }
  const old = await here.worker(settings)
  await startHeld(here, 'items', 0)
  await old.says('holding items.0')
  old.tell('shutdown 60000')
  await old.says('draining')

  const brief = await here.worker(settings)
  await startHeld(here, 'items', 1, 2, 3)
  await brief.saysTimes(3, 'holding')
  brief.tell('shutdown 0')
  expect(await brief.ended).toEqual({ code: 0, signal: null })
  const next = await here.worker({ ...settings, holds: false })
  for (const n of [1, 2, 3]) expect(await client.handle(`items.${n}`).result()).toBe(next.pid)
  await startHeld(here, 'items', 4, 5, 6)
  for (const n of [4, 5, 6]) expect(await client.handle(`items.${n}`).result()).toBe(next.pid)

  expect(await client.handle('items.0').status()).toBe('PENDING')
  old.tell('release items.0')
  expect(await old.ended).toEqual({ code: 0, signal: null })
  expect(await client.handle('items.0').result()).toBe(old.pid)
  expect(journal.of('begin').filter(({ pid }) => pid === old.pid)).toHaveLength(1)
  expect(await outcomes(here, 'items.1')).toEqual(['interrupted', 'succeeded'])
})

it('a run whose process is leaving is nobody else’s while it goes on, longer than its lease (D-22, D-25)', async () => {
  const here = queuePlace()
  const { client, journal } = here
  const queues = { serial: { globalConcurrency: 1 }, open: {} }
  const leaving = await here.worker({ queues, leaseMs: LEASE_MS, holds: true })
  await startHeld(here, 'serial', 0, 1)
  await leaving.says('holding serial.0')
  leaving.tell('shutdown 60000')
  await leaving.says('draining')
  const drainingAt = performance.now()
  const other = await here.worker({ queues })
  const busy = async (): Promise<boolean> => {
    await (await client.start('task', { ms: 1 }, { queue: 'open' })).result()
    return performance.now() - drainingAt > 2 * LEASE_MS
  }
  await until(busy, 'two leases')
  expect(await client.handle('serial.0').status()).toBe('PENDING')
  expect(journal.of('begin').filter(({ key }) => key.startsWith('serial'))).toHaveLength(1)

  leaving.tell('release serial.0')
  expect(await client.handle('serial.0').result()).toBe(leaving.pid)
  expect(await client.handle('serial.1').result()).toBe(other.pid)
  expect(await outcomes(here, 'serial.0')).toEqual(['succeeded'])
  expect(await leaving.ended).toEqual({ code: 0, signal: null })
})

it('a run that outlasts the shutdown of its process is handed back, its place and slot with it (D-22)', async () => {
  const here = queuePlace()
  const { client, journal } = here
  const queues = { serial: { globalConcurrency: 1 } }
  const leaving = await here.worker({ queues, holds: true })
  await startHeld(here, 'serial', 0, 1)
  await leaving.says('holding serial.0')
  const other = await here.worker({ queues })
  leaving.tell('shutdown 300')
  expect(await client.handle('serial.1').result()).toBe(other.pid)
  expect(await client.handle('serial.0').result()).toBe(other.pid)
  expect(await outcomes(here, 'serial.0')).toEqual(['interrupted', 'succeeded'])
  expect(journal.of('begin').map(({ key, pid }) => [key, pid])).toEqual([
    ['serial.0', leaving.pid],
    ['serial.0', other.pid],
    ['serial.1', other.pid],
  ])
  expect(mostAtOnce(await claimsOf(client, ['serial']))).toBe(1)
})

it('a process is killed between two steps of a run at limit 1: the run goes on, then the next (D-04)', async () => {
  const here = queuePlace()
  const queues = { serial: { globalConcurrency: 1 } }
  const victim = await here.worker({ queues, haltAt: 'after the record of first' })
  for (const n of [0, 1]) await here.client.start('task', { ms: 2 }, { queue: 'serial', id: `serial.${n}` })
  await victim.says('halted')
  await here.kill(victim)
  const heir = await here.worker({ queues })
  await here.drained(['serial'])
  const { faults, begins, peaks } = accountOf(here.journal.read())
  expect(faults).toEqual([])
  expect([...begins]).toEqual([
    ['serial.0', [victim.pid, heir.pid]],
    ['serial.1', [heir.pid]],
  ])
  expect(peaks.get('serial')).toBe(1)
  expect(here.journal.of('effect', 'serial.0:0')).toHaveLength(1)
})

it('engines that close at random moments leave no run behind: done, or handed back (D-27)', async () => {
  const ENGINES = 60
  const here = queuePlace()
  const { client, journal } = here
  const task = taskWorkflow({ journal, begun: () => {}, hold: () => Promise.resolve() })
  for (let n = 0; n < ENGINES; n += 1) {
    const engine = new Engine({
      store: sqlite(here.store),
      definitions: [task],
      queues: [queue('items')],
      logger: quiet,
    })
    const inputs = Array.from({ length: 3 }, (_, k) => ({
      input: { ms: 10 },
      options: { queue: 'items', id: `items.${n}-${k}` },
    }))
    await Promise.all([engine.launch(), client.startMany('task', inputs)])
    await setTimeout(Math.random() * 6)
    await engine.shutdown({ timeout: n % 2 === 0 ? 0 : 10_000 })
    expect([n, await client.queues.stats('items')]).toEqual([n, expect.objectContaining({ pending: 0 })])
  }
  await here.worker({ queues: { items: {} } })
  await here.drained(['items'])
  const claims = await claimsOf(client, ['items'])
  const count = (outcome: string): number => claims.filter((claim) => claim.outcome === outcome).length
  expect(count('succeeded')).toBe(3 * ENGINES)
  expect(count('interrupted')).toBe(claims.length - 3 * ENGINES)
  expect(count('interrupted')).toBeGreaterThan(ENGINES / 10)
})
