/**
 * What a claim costs in statements: one that finds nothing is one statement without a transaction, whatever holds a
 * queue up and however many queues, lanes and runs there are; one that finds something takes a few.
 */
import { describe, expect, it, vi } from 'vitest'
import { ManualClock } from '../../../src/store/conformance/manual-clock.ts'
import type { ClaimOutcome, ClaimRequest, NewQueue } from '../../../src/store/contract.ts'
import { claim } from '../../../src/store/postgres/claim/claim.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import { Connection } from '../../../src/store/postgres/connection.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { changeQueue, registerQueues } from '../../../src/store/postgres/queues.ts'
import { newClaim, newQueue } from '../sqlite/requests.ts'
import { enqueue, newRun } from './claims.ts'
import { openDatabase } from './databases.ts'

interface Place {
  readonly database: Database
  readonly clock: ManualClock
  /** A claim that is one statement. */
  look(request: ClaimRequest): Promise<ClaimOutcome>
}

async function open(...queues: readonly NewQueue[]): Promise<Place> {
  const clock = new ManualClock()
  const database = await openDatabase({ clock })
  await registerQueues(database, queues)
  return {
    database,
    clock,
    look: async (request) => {
      const { outcome, statements, commands } = await counted(database, request)
      expect([statements, commands]).toEqual([1, 0])
      return outcome
    },
  }
}

/** `commands`: of transactions. */
async function counted(database: Database, request: ClaimRequest) {
  const query = vi.spyOn(Connection.prototype, 'query')
  const command = vi.spyOn(Connection.prototype, 'command')
  try {
    const outcome = await claim(database, request)
    const own = query.mock.calls.filter(([sql]) => sql.includes('perdure.'))
    return { outcome, statements: own.length, commands: command.mock.calls.length }
  } finally {
    query.mockRestore()
    command.mockRestore()
  }
}

let tokens = 0
const newTokens = (count: number): readonly string[] => Array.from({ length: count }, () => `token ${tokens++}`)

/** Claims what there is, up to the limits. */
async function drain(database: Database, owner = 'o'): Promise<number> {
  for (let claimed = 0; ; ) {
    const { runs } = await claim(database, newClaim(newTokens(10), { queue: 'media', owner }))
    if (runs.length === 0) return claimed
    claimed += runs.length
  }
}

const media = (knobs: Partial<NewQueue>): NewQueue => newQueue('media', knobs)
const waiting = (count: number, lanes = 1) =>
  Array.from({ length: count }, (_, n) => newRun(`run ${n}`, { queue: 'media', partitionKey: `lane ${n % lanes}` }))
const NOTHING = { runs: [], nextAt: null }

describe('a look that finds nothing is one statement', () => {
  it('on many idle queues, with and without a version', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `queue ${n}`)
    const { database, look } = await open(...names.map((name, n) => newQueue(name, { partitioned: n % 2 === 0 })))
    await enqueue(database, newRun('unserved', { definition: 'other', queue: 'queue 1' }))
    const sources = [null, ...names].map((queue) => ({ queue, leaseMs: 1_000, room: 10, lanes: null }))
    expect(await look(newClaim(['t'], { sources }))).toEqual(NOTHING)
    expect(await look(newClaim(['t'], { sources, version: 'v1' }))).toEqual(NOTHING)
  })

  it.each([
    ['at the global limit', { globalConcurrency: 3 }, 3],
    ['at the global limit of each lane', { globalConcurrency: 1, partitioned: true }, 5],
    ['paused', { paused: true }, 0],
  ])('%s', async (_, knobs, started) => {
    const { database, look } = await open(media({}))
    await changeQueue(database, 'media', knobs)
    await enqueue(database, ...waiting(50, 5))
    expect(await drain(database)).toBe(started)
    expect(await look(newClaim(['t'], { queue: 'media' }))).toEqual(NOTHING)
  })

  it.each([false, true])('at the rate limit, in lanes: %s', async (partitioned) => {
    const { database, clock, look } = await open(media({ rateLimit: { limit: 2, periodMs: 1_000 }, partitioned }))
    await enqueue(database, ...waiting(50, 5))
    const opensAt = clock.now() + 1_000
    expect(await drain(database)).toBe(partitioned ? 10 : 2)
    expect(await look(newClaim(['t'], { queue: 'media' }))).toEqual({ runs: [], nextAt: opensAt })
    clock.pass(999)
    expect(await look(newClaim(['t'], { queue: 'media' }))).toEqual({ runs: [], nextAt: opensAt })
    clock.pass(1)
    expect(await drain(database)).toBe(partitioned ? 10 : 2)
  })

  it('where each of two processes has its fill of the lanes', async () => {
    const { database, look } = await open(media({ partitioned: true }))
    await enqueue(database, ...waiting(50, 5))
    const running = new Map(Array.from({ length: 5 }, (_, n) => [`lane ${n}`, 0]))
    const lanes = { limit: 1, running }
    for (const owner of ['p1', 'p2']) {
      const request = newClaim(newTokens(6), { queue: 'media', owner, lanes })
      expect((await claim(database, request)).runs).toHaveLength(5)
    }
    for (const lane of running.keys()) running.set(lane, 1)
    for (const owner of ['p1', 'p2', 'p1']) {
      expect(await look(newClaim([`${owner} more`], { queue: 'media', owner, lanes }))).toEqual(NOTHING)
    }
    // A third has room everywhere.
    expect(await drain(database, 'p3')).toBe(40)
  })

  it.each([false, true])('where what is due to be resumed has no room, in lanes: %s', async (partitioned) => {
    const { database, clock, look } = await open(
      media({ globalConcurrency: 1, releaseWhileWaiting: true, partitioned }),
    )
    await enqueue(database, ...waiting(2))
    const settlement = { type: 'suspend', wakeAt: clock.now() + 1_000, children: [] } as const
    const { runs } = await claim(database, newClaim(['t1'], { queue: 'media' }))
    await commit(database, [{ type: 'settle', runId: runs[0]?.run.id ?? '', token: 't1', entries: [], settlement }])
    await claim(database, newClaim(['t2'], { queue: 'media' }))
    clock.pass(1_000)
    expect(await claim(database, newClaim(['t3'], { queue: 'media' }))).toEqual(NOTHING)
    expect(await look(newClaim(['t3'], { queue: 'media' }))).toEqual(NOTHING)
  })

  it('without room of its own', async () => {
    const { database, look } = await open(media({}))
    await enqueue(database, ...waiting(2), newRun('later', { queue: 'media', due: { type: 'after', ms: 5 } }))
    expect((await look(newClaim(['t'], { queue: 'media', room: 0 }))).runs).toEqual([])
    expect((await look(newClaim([], { queue: 'media' }))).runs).toEqual([])
  })
})

describe('a claim of many takes a few statements beside begin and commit', () => {
  it.each([
    ['the look, the pick, the update, of a queue without limits', {}, 3],
    ['a lock and a survey more where there is a limit', { globalConcurrency: 1_000 }, 5],
    ['the ledger, where there is a rate', { rateLimit: { limit: 1_000, periodMs: 1_000 } }, 6],
    ['its lanes, where there are some', { globalConcurrency: 1_000, partitioned: true }, 7],
  ])('%s', async (_, knobs, most) => {
    const { database } = await open(media(knobs))
    await enqueue(database, ...waiting(150, 10))
    const { outcome, statements, commands } = await counted(database, newClaim(newTokens(100), { queue: 'media' }))
    expect(outcome.runs).toHaveLength(100)
    expect(commands).toBe(2)
    expect(statements).toBeLessThanOrEqual(most)
  })
})
