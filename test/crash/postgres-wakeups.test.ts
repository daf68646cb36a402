/** No run is left behind that is enqueued while a worker in another process finds its queue empty; and polling alone will do. */
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { durableServer, FULL, freshSpec } from './postgres-server.ts'
import { accountOf } from './queue-account.ts'
import { queuePlace } from './queue-place.ts'
import { closeStarts, latencyAt, race, tell } from './queue-races.ts'
import { type PostgresSpec, specOf } from './store-spec.ts'

const server = await durableServer()

/** How often a dispatcher looks by itself. */
const POLL_MS = 1_000
const SLACK_MS = 1_000
const SCHEMAS = 4

function specs(changes: Partial<PostgresSpec> = {}): readonly string[] {
  return Array.from({ length: SCHEMAS }, () => specOf(freshSpec(server, changes)))
}

it('races of enqueueing against finding nothing: none is left behind, none is found by a poll (C-08)', async () => {
  const racesEach = FULL ? 500 : 100
  const races = await race({ specs: specs(), racesEach, patience: 'patient' })
  tell(races)
  expect(latencyAt(races, 0.5)).toBeLessThan(POLL_MS / 2)
  const { before, after } = closeStarts(races)
  expect(Math.min(before, after)).toBeGreaterThan((SCHEMAS * racesEach) / 50)
}, 240_000)

it('without notifications each is found by the next poll', async () => {
  const races = await race({ specs: specs({ notify: false }), racesEach: FULL ? 50 : 5, patience: 'usual' })
  tell(races)
  expect(latencyAt(races, 1)).toBeLessThan(POLL_MS + SLACK_MS)
  // It was a poll that found them.
  expect(latencyAt(races, 1)).toBeGreaterThan(POLL_MS / 10)
}, 240_000)

it('without notifications results, delays, slots and cancellations are noticed by polls', async () => {
  const here = queuePlace(specOf(freshSpec(server, { notify: false })))
  const { client, journal } = here
  const queues = { open: {}, serial: { globalConcurrency: 1, lease: '3s' } }
  const workers = await Promise.all([1, 2].map(() => here.worker({ queues, holds: true })))
  const within = async (ms: number, waiting: Promise<unknown>): Promise<void> => {
    expect(await Promise.race([waiting.then(() => 'in time'), setTimeout(ms, 'late')])).toBe('in time')
  }
  const anySays = (line: string): Promise<string> => Promise.race(workers.map((worker) => worker.says(line)))
  // Found by one poll, and its end by another, of the process that waits.
  const quick = await client.start('task', { ms: 0 }, { queue: 'open', id: 'open.0' })
  await within(2 * POLL_MS + SLACK_MS, quick.result())
  await client.start('task', { ms: 0 }, { queue: 'open', id: 'open.1', delay: 300 })
  await within(POLL_MS + 300 + SLACK_MS, anySays('begun open.1'))

  // A slot that one process frees is another's.
  for (const n of [0, 1, 2])
    await client.start('task', { ms: 0, hold: 'in a step' }, { queue: 'serial', id: `serial.${n}` })
  for (const n of [0, 1, 2]) {
    await within(POLL_MS + SLACK_MS, anySays(`holding serial.${n}`))
    if (n < 2) for (const worker of workers) worker.tell(`release serial.${n}`)
  }
  // Its process is told when it renews the lease, at the latest.
  expect(await client.cancel('serial.2')).toBe(true)
  const holder = workers.find(({ lines }) => lines.includes('holding serial.2'))
  holder?.tell('release serial.2')
  await within(2 * POLL_MS + 1_000 + SLACK_MS, here.drained(['open', 'serial']))
  expect(await client.handle('serial.2').status()).toBe('CANCELLED')
  const { faults, peaks } = accountOf(journal.read())
  expect([faults, peaks.get('serial')]).toEqual([[], 1])
}, 60_000)

it('one row of a batch that a user’s transaction has locked: the rest is committed meanwhile', async () => {
  const HELD = 40
  const LIMIT_MS = 200
  const spec = freshSpec(server)
  const here = queuePlace(specOf(spec))
  const worker = await here.worker({ queues: { open: {} }, holds: true })
  const hold = async (name: string): Promise<readonly string[]> => {
    const ids = Array.from({ length: HELD }, (_, n) => `open.${name}-${n}`)
    const runs = ids.map((id) => ({ input: { ms: 0, hold: 'at the end' }, options: { queue: 'open', id } }))
    await here.client.startMany('task', runs)
    for (const id of ids) await worker.says(`holding ${id}`)
    return ids
  }
  const settle = async (ids: readonly string[], count: number): Promise<number> => {
    const releasedAt = performance.now()
    for (const id of ids) worker.tell(`release ${id}`)
    const settled = (): number => {
      const known = new Set(here.journal.of('settled').map(({ key }) => key))
      return ids.filter((id) => known.has(id)).length
    }
    while (settled() < count) await setTimeout(1)
    return performance.now() - releasedAt
  }
  const freelyMs = await settle(await hold('free'), HELD)
  const ids = await hold('blocked')
  const [locked = ''] = ids.slice(HELD / 2)
  const user = await server.connect()
  await user.query('begin')
  await user.query(`select 1 from "${spec.schema}".runs where id = $1 for update`, [locked])
  const besideMs = await settle(ids, HELD - 1)
  console.log(`${HELD} settlements: ${freelyMs.toFixed(0)} ms; beside a locked row: ${besideMs.toFixed(0)} ms`)
  expect(besideMs).toBeLessThan(freelyMs + LIMIT_MS)
  expect(here.journal.of('settled', locked)).toEqual([])
  await user.query('commit')
  await here.client.handle(locked).result({ timeout: '10s' })
  expect(accountOf(here.journal.read()).faults).toEqual([])
}, 60_000)
