/**
 * A claim costs what it takes: as many statements, whatever else the store holds. (That each statement finds its rows
 * by an index is in plans.test.ts.)
 */
import { describe, expect, it, vi } from 'vitest'
import { ManualClock } from '../../../src/store/conformance/manual-clock.ts'
import type { ClaimRequest, NewRun, Settlement, Store } from '../../../src/store/contract.ts'
import { Database as StoreDatabase } from '../../../src/store/sqlite/database.ts'
import { freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newQueue, newRun } from './requests.ts'

async function statementsOf(call: () => Promise<unknown>): Promise<number> {
  const prepare = vi.spyOn(StoreDatabase.prototype, 'prepare')
  try {
    await call()
    return prepare.mock.calls.length
  } finally {
    prepare.mockRestore()
  }
}

/** Statements of a claim that finds exactly this run. */
async function costOf(store: Store, id: string, request: ClaimRequest): Promise<number> {
  return await statementsOf(async () => {
    const { runs } = await store.claim(request)
    expect(runs.map(({ run }) => run.id)).toEqual([id])
  })
}

const media = (count: number, run: (n: number) => Partial<NewRun> = () => ({})): readonly NewRun[] =>
  Array.from({ length: count }, (_, n) => newRun(`run ${n}`, { queue: 'media', ...run(n) }))
const lane = (n: number) => ({ partitionKey: `lane ${n}` })

describe.each([10, 500])('beside %i others, a claim of one run takes few statements:', (count) => {
  it('runs that wait, of its own definition and of others, and other versions', async () => {
    const store = await openStore(freshPath())
    await enqueue(store, newRun('first', { queue: 'media' }))
    await enqueue(store, ...media(count, (n) => ({ definition: n % 2 === 0 ? 'convert' : `other ${n}` })))
    expect(await costOf(store, 'first', newClaim(['t'], { queue: 'media', version: 'v1' }))).toBeLessThan(16)
  })

  it('lanes at their global limit', async () => {
    const store = await openStore(freshPath())
    await store.registerQueues([newQueue('media', { partitioned: true, globalConcurrency: 1 })])
    await enqueue(store, ...media(2 * count, (n) => lane(n % count)))
    const tokens = Array.from({ length: count }, (_, n) => `token ${n}`)
    expect((await store.claim(newClaim(tokens, { queue: 'media' }))).runs).toHaveLength(count)
    await enqueue(store, newRun('open', { queue: 'media', partitionKey: 'open' }))
    expect(await costOf(store, 'open', newClaim(['t'], { queue: 'media' }))).toBeLessThan(25)
  })

  it('lanes of which this process has its fill', async () => {
    const store = await openStore(freshPath())
    await store.registerQueues([newQueue('media', { partitioned: true })])
    await enqueue(store, ...media(2 * count, (n) => lane(n % count)))
    const tokens = Array.from({ length: count }, (_, n) => `token ${n}`)
    const running = new Map<string, number>()
    const lanes = { limit: 1, running }
    expect((await store.claim(newClaim(tokens, { queue: 'media', lanes }))).runs).toHaveLength(count)
    for (let n = 0; n < count; n += 1) running.set(`lane ${n}`, 1)
    await enqueue(store, newRun('open', { queue: 'media', partitionKey: 'open' }))
    expect(await costOf(store, 'open', newClaim(['t'], { queue: 'media', lanes }))).toBeLessThan(25)
    // One that has let go of a lane has room there again.
    running.delete('lane 3')
    const settlement: Settlement = { type: 'succeed', output: '1' }
    await store.commit([{ type: 'settle', runId: 'run 3', token: 'token 3', entries: [], settlement }])
    expect(await costOf(store, `run ${count + 3}`, newClaim(['u'], { queue: 'media', lanes }))).toBeLessThan(25)
  })

  it('lanes at their rate limit', async () => {
    const store = await openStore(freshPath(), new ManualClock())
    await store.registerQueues([newQueue('media', { partitioned: true, rateLimit: { limit: 1, periodMs: 1_000 } })])
    await enqueue(store, ...media(2 * count, (n) => lane(n % count)))
    const tokens = Array.from({ length: count }, (_, n) => `token ${n}`)
    expect((await store.claim(newClaim(tokens, { queue: 'media' }))).runs).toHaveLength(count)
    await enqueue(store, newRun('open', { queue: 'media', partitionKey: 'open' }))
    expect(await costOf(store, 'open', newClaim(['t'], { queue: 'media' }))).toBeLessThan(30)
  })

  it('suspended runs that are due in a lane without room', async () => {
    const clock = new ManualClock()
    const store = await openStore(freshPath(), clock)
    const knobs = { partitioned: true, globalConcurrency: count, releaseWhileWaiting: true }
    await store.registerQueues([newQueue('media', knobs)])
    await enqueue(store, ...media(count, () => lane(0)), newRun('other', { queue: 'media', ...lane(1) }))
    const settlement: Settlement = { type: 'suspend', wakeAt: clock.now() + 5, children: [] }
    const tokens = Array.from({ length: count + 1 }, (_, n) => `token ${n}`)
    const { runs } = await store.claim(newClaim(tokens, { queue: 'media' }))
    const commands = runs.map(({ run, token }) => {
      return { type: 'settle', runId: run.id, token, entries: [], settlement } as const
    })
    for (let done = 0; done < commands.length; ) done += (await store.commit(commands.slice(done))).length
    await store.changeQueue('media', { globalConcurrency: 1 })
    clock.pass(5)
    expect((await store.claim(newClaim(['t1'], { queue: 'media' }))).runs.map(({ run }) => run.id)).toEqual(['run 0'])
    expect(await costOf(store, 'other', newClaim(['t2'], { queue: 'media' }))).toBeLessThan(25)
  })
})
