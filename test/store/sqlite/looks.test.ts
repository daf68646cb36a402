/**
 * Claims that find nothing: whatever holds a queue up, they take no write lock and cost three statements, however many
 * queues, lanes and runs there are. Otherwise idle processes would keep each other awake.
 */
import { describe, expect, it, vi } from 'vitest'
import { ManualClock } from '../../../src/store/conformance/manual-clock.ts'
import type { ClaimOutcome, ClaimRequest, NewQueue, Store } from '../../../src/store/contract.ts'
import { Database as StoreDatabase } from '../../../src/store/sqlite/database.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newQueue, newRun } from './requests.ts'

const MOST_STATEMENTS = 3

interface Place {
  readonly store: Store
  readonly clock: ManualClock
  /** Claims while another connection has the write lock. */
  look(request: ClaimRequest): Promise<ClaimOutcome>
}

async function open(...queues: readonly NewQueue[]): Promise<Place> {
  const [path, clock] = [freshPath(), new ManualClock()]
  const store = await openStore(path, clock)
  await store.registerQueues(queues)
  return {
    store,
    clock,
    look: async (request) => {
      const other = await connect(path)
      other.exec('begin immediate')
      const prepare = vi.spyOn(StoreDatabase.prototype, 'prepare')
      try {
        const outcome = await store.claim(request)
        expect(prepare.mock.calls.length).toBeLessThanOrEqual(MOST_STATEMENTS)
        return outcome
      } finally {
        prepare.mockRestore()
        other.close()
      }
    },
  }
}

let tokens = 0
const newTokens = (count: number): readonly string[] => Array.from({ length: count }, () => `token ${tokens++}`)

/** Claims what there is, up to the limits. */
async function drain(store: Store, owner = 'o'): Promise<number> {
  for (let claimed = 0; ; ) {
    const { runs } = await store.claim(newClaim(newTokens(10), { queue: 'media', owner }))
    if (runs.length === 0) return claimed
    claimed += runs.length
  }
}

const media = (knobs: Partial<NewQueue>): NewQueue => newQueue('media', knobs)
const waiting = (count: number, lanes = 1) =>
  Array.from({ length: count }, (_, n) => newRun(`run ${n}`, { queue: 'media', partitionKey: `lane ${n % lanes}` }))
const NOTHING = { runs: [], nextAt: null }

describe('a look that finds nothing costs no lock', () => {
  it('on many idle queues, with and without a version', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `queue ${n}`)
    const { store, look } = await open(...names.map((name, n) => newQueue(name, { partitioned: n % 2 === 0 })))
    await enqueue(store, newRun('unserved', { definition: 'other', queue: 'queue 1' }))
    const sources = [null, ...names].map((queue) => ({ queue, leaseMs: 1_000, room: 10, lanes: null }))
    expect(await look(newClaim(['t'], { sources }))).toEqual(NOTHING)
    expect(await look(newClaim(['t'], { sources, version: 'v1' }))).toEqual(NOTHING)
  })

  it.each([
    ['at the global limit', { globalConcurrency: 3 }, 3],
    ['at the global limit of each lane', { globalConcurrency: 1, partitioned: true }, 5],
    ['paused', { paused: true }, 0],
  ])('%s', async (_, knobs, started) => {
    const { store, look } = await open(media({}))
    await store.changeQueue('media', knobs)
    await enqueue(store, ...waiting(50, 5))
    expect(await drain(store)).toBe(started)
    expect(await look(newClaim(['t'], { queue: 'media' }))).toEqual(NOTHING)
  })

  it.each([false, true])('at the rate limit, in lanes: %s', async (partitioned) => {
    const { store, clock, look } = await open(media({ rateLimit: { limit: 2, periodMs: 1_000 }, partitioned }))
    await enqueue(store, ...waiting(50, 5))
    const opensAt = clock.now() + 1_000
    expect(await drain(store)).toBe(partitioned ? 10 : 2)
    expect(await look(newClaim(['t'], { queue: 'media' }))).toEqual({ runs: [], nextAt: opensAt })
    clock.pass(999)
    expect(await look(newClaim(['t'], { queue: 'media' }))).toEqual({ runs: [], nextAt: opensAt })
    clock.pass(1)
    expect(await drain(store)).toBe(partitioned ? 10 : 2)
  })

  it('where each of two processes has its fill of the lanes', async () => {
    const { store, look } = await open(media({ partitioned: true }))
    await enqueue(store, ...waiting(50, 5))
    const running = new Map(Array.from({ length: 5 }, (_, n) => [`lane ${n}`, 0]))
    const lanes = { limit: 1, running }
    for (const owner of ['p1', 'p2']) {
      const request = newClaim(
        ['a', 'b', 'c', 'd', 'e', 'f'].map((token) => owner + token),
        {
          queue: 'media',
          owner,
          lanes,
        },
      )
      expect((await store.claim(request)).runs).toHaveLength(5)
    }
    for (const lane of running.keys()) running.set(lane, 1)
    for (const owner of ['p1', 'p2', 'p1']) {
      expect(await look(newClaim([`${owner} more`], { queue: 'media', owner, lanes }))).toEqual(NOTHING)
    }
    // A third has room everywhere.
    expect(await drain(store, 'p3')).toBe(40)
  })

  it.each([false, true])('where what is due to be resumed has no room, in lanes: %s', async (partitioned) => {
    const { store, clock, look } = await open(media({ globalConcurrency: 1, releaseWhileWaiting: true, partitioned }))
    await enqueue(store, ...waiting(2))
    const settlement = { type: 'suspend', wakeAt: clock.now() + 1_000, children: [] } as const
    const { runs } = await store.claim(newClaim(['t1'], { queue: 'media' }))
    await store.commit([{ type: 'settle', runId: runs[0]?.run.id ?? '', token: 't1', entries: [], settlement }])
    await store.claim(newClaim(['t2'], { queue: 'media' }))
    clock.pass(1_000)
    expect(await store.claim(newClaim(['t3'], { queue: 'media' }))).toEqual(NOTHING)
    expect(await look(newClaim(['t3'], { queue: 'media' }))).toEqual(NOTHING)
  })

  it('without room of its own', async () => {
    const { store, look } = await open(media({}))
    await enqueue(store, ...waiting(2), newRun('later', { queue: 'media', due: { type: 'after', ms: 5 } }))
    expect((await look(newClaim(['t'], { queue: 'media', room: 0 }))).runs).toEqual([])
    expect((await look(newClaim([], { queue: 'media' }))).runs).toEqual([])
  })
})
