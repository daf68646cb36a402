/** Processes that come back after their lease has ended: what they held is another's, and they free no slot of it. */
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { until } from '../api/engine/support.ts'
import type { Child } from './processes.ts'
import { accountOf } from './queue-account.ts'
import { claimsOf, mostAtOnce } from './queue-claims.ts'
import { type QueuePlace, queuePlace } from './queue-place.ts'

const LEASE_MS = 600
const ROUNDS = 10
/** How often a reaper looks that knows of no lease that ends. */
const REAPER_MS = 5_000
const SLACK_MS = 1_500

const queues = {
  serial: { globalConcurrency: 1 },
  keyed: { partitioned: true, globalConcurrency: 1 },
  open: { workerConcurrency: 1 },
}

/** Resolves when the dispatchers of both processes have looked at all their queues once more. */
async function bothLook({ client }: QueuePlace, workers: readonly Child[], round: string): Promise<void> {
  const probes = workers.map((_, n) => `open.${round}-${n}`)
  for (const id of probes) await client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'open', id })
  // Each process takes one, since it may not have two; and a look is at all queues.
  for (const worker of workers) await worker.says(`holding open.${round}-`)
  for (const worker of workers) for (const id of probes) worker.tell(`release ${id}`)
  for (const id of probes) await client.handle(id).result()
}

/** It looks for leases that have ended until it has the run: by itself it would look again after 5 s. */
async function inherits(heir: Child, runId: string): Promise<void> {
  for (let waits = true; waits; ) {
    heir.tell('recover')
    waits = await Promise.race([heir.says(`holding ${runId}`).then(() => false), setTimeout(LEASE_MS / 6, true)])
  }
}

async function isTold(zombie: Child, runId: string): Promise<void> {
  await until(() => zombie.lines.some((line) => line.startsWith(`warn ${runId} claim lost`)), 'the loss of the claim')
}

async function holderOf(workers: readonly Child[], runId: string): Promise<Child> {
  const held = workers.map(async (worker) => {
    await worker.says(`holding ${runId}`)
    return worker
  })
  return Promise.race(held)
}

it.each([
  ['is told by its lease thread', 'in a step', false, 4],
  ['is told by nothing but the refusal of its settlement', 'at the end', true, ROUNDS],
] as const)(
  'a frozen process that comes back, and %s, frees no slot twice (C-06, D-35)',
  async (_, hold, mute, rounds) => {
    const here = queuePlace()
    const { client, journal } = here
    const settings = { queues, leaseMs: LEASE_MS, holds: true }
    const zombie = await here.worker({ ...settings, mute })
    const heir = await here.worker(settings)
    for (let round = 0; round < rounds; round += 1) {
      const [first, second] = [`serial.${round}-a`, `serial.${round}-b`]
      await here.freeze(heir)
      for (const id of [first, second]) await client.start('task', { ms: 0, hold }, { queue: 'serial', id })
      await zombie.says(`holding ${first}`)
      await here.freeze(zombie)
      here.lost(first, zombie)
      heir.signal('SIGCONT')
      await inherits(heir, first)
      zombie.tell(`release ${first}`)
      zombie.signal('SIGCONT')
      await isTold(zombie, first)
      await bothLook(here, [zombie, heir], String(round))
      // The slot is the heir's: what the zombie did has made no room for the next.
      expect(journal.of('begin', second)).toEqual([])
      expect(await client.handle(first).status()).toBe('PENDING')
      expect(await client.queues.stats('serial')).toMatchObject({ pending: 1, enqueued: 1 })
      heir.tell(`release ${first}`)
      const last = await holderOf([zombie, heir], second)
      last.tell(`release ${second}`)
      await client.handle(second).result()
    }
    const input = { ms: 10 }
    await client.startMany(
      'task',
      Array.from({ length: 12 }, (_each, n) => ({ input, options: { queue: 'serial', id: `serial.last-${n}` } })),
    )
    await here.drained(['serial'])
    const account = accountOf(journal.read())
    expect(account.faults).toEqual([])
    expect(account.peaks.get('serial')).toBe(1)
    expect(mostAtOnce(await claimsOf(client, ['serial']))).toBe(1)
    expect([...account.begins.values()].filter((pids) => pids.length === 2)).toHaveLength(rounds)
  },
)

it('a handler that outstays its lease can’t complete late, and its slot is the heir’s (D-23, C-06)', async () => {
  const here = queuePlace()
  const { client, journal } = here
  const mute = await here.worker({ queues, leaseMs: LEASE_MS, holds: true, mute: true })
  await client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'serial', id: 'serial.a' })
  await client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'serial', id: 'serial.b' })
  await mute.says('holding serial.a')
  const heir = await here.worker({ queues, holds: true })
  await heir.says('holding serial.a')
  here.lost('serial.a', mute)
  mute.tell('release serial.a')
  await isTold(mute, 'serial.a')
  await bothLook(here, [mute, heir], 'late')
  expect(journal.of('begin', 'serial.b')).toEqual([])
  expect(await client.handle('serial.a').status()).toBe('PENDING')
  heir.tell('release serial.a')
  expect(await client.handle('serial.a').result()).toBe(heir.pid)
  heir.tell('release serial.b')
  mute.tell('release serial.b')
})

it.each([
  ['frozen, so that nobody can know', 'when the lease ends'],
  ['killed', 'without waiting for the lease'],
])('the key of a process that was %s is free %s (C-07)', async (how) => {
  const here = queuePlace()
  const { client } = here
  const frozen = how.startsWith('frozen')
  const leaseMs = frozen ? 1_500 : 30_000
  const victim = await here.worker({ queues, leaseMs, holds: true })
  for (const n of [0, 1]) {
    await client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'keyed', partitionKey: 'k', id: `keyed/k.${n}` })
  }
  await victim.says('holding keyed/k.0')
  const heir = await here.worker({ queues, leaseMs, holds: true })
  if (frozen) await here.freeze(victim)
  else await here.kill(victim)
  const stoodStillAt = performance.now()
  await heir.says('holding keyed/k.0')
  const passedMs = performance.now() - stoodStillAt
  if (frozen) {
    // It may have been renewed a third of the lease before.
    expect(passedMs).toBeGreaterThan((leaseMs * 2) / 3 - 300)
    expect(passedMs).toBeLessThan(leaseMs + SLACK_MS)
  } else {
    expect(passedMs).toBeLessThan(REAPER_MS + SLACK_MS)
  }
  heir.tell('release keyed/k.0')
  await heir.says('holding keyed/k.1')
  heir.tell('release keyed/k.1')
  expect(await client.handle('keyed/k.1').result()).toBe(heir.pid)
})
