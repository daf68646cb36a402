/** What is listed is found however the index at hand is ordered, and whatever else the store holds. */
import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/store/contract.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newQueue, newRun } from './requests.ts'

/** More than are looked at in the order of acceptance. */
const NEWER = 2_500

/** Finished runs that came later than all that are there. */
async function finishMore(path: string): Promise<void> {
  const database = await connect(path)
  database.exec(`
    with recursive n (i) as (select 1 union all select i + 1 from n where i < ${NEWER})
    insert into perdure_runs (id, definition, kind, queue, status, input_hash, epoch, deliveries, attempt, crashes,
      max_recoveries, cancel_requested, created_at, ended_at, start_id)
    select 'ended ' || i, 'convert', 'workflow', 'media', 'SUCCESS', 'hash', 0, 1, 1, 0, 50, 0, 1, 2, 'start' from n`)
  database.close()
}

async function idsOf(store: Store, request: Partial<Parameters<Store['list']>[0]>): Promise<readonly string[]> {
  return (await store.list({ limit: 100, ...request })).map(({ id }) => id)
}

describe('a list', () => {
  it('of enqueued runs has old ones, those without a key among them, behind many that have finished', async () => {
    const path = freshPath()
    const store = await openStore(path)
    await store.registerQueues([newQueue('lanes', { partitioned: true })])
    const keyless = newRun('keyless', { queue: 'lanes' })
    const keyed = newRun('keyed', { queue: 'lanes', partitionKey: 'a' })
    await enqueue(store, newRun('first'), keyless, keyed, newRun('other', { definition: 'other' }))
    const status = ['ENQUEUED'] as const
    expect(await idsOf(store, { status })).toEqual(['other', 'keyed', 'keyless', 'first'])
    await finishMore(path)
    expect(await idsOf(store, { status })).toEqual(['other', 'keyed', 'keyless', 'first'])
    expect(await idsOf(store, { status, queue: 'lanes' })).toEqual(['keyed', 'keyless'])
    expect(await idsOf(store, { status, definition: 'other' })).toEqual(['other'])
    expect(await idsOf(store, { status, limit: 2 })).toEqual(['other', 'keyed'])
    const [, keyedRun] = await store.list({ status, limit: 2 })
    expect(await idsOf(store, { status, limit: 2, beforeSeq: keyedRun?.seq ?? 0 })).toEqual(['keyless', 'first'])
  })

  it('of a queue, or of a definition, puts those of all definitions, or queues, in one order', async () => {
    const store = await openStore(freshPath())
    const runs = Array.from({ length: 12 }, (_, n) => {
      const queue = ['media', 'mail', null][n % 3] ?? null
      return newRun(`run ${n}`, { queue, definition: n % 2 === 0 ? 'convert' : 'other' })
    })
    await enqueue(store, ...runs)
    expect(await idsOf(store, { queue: 'media' })).toEqual(['run 9', 'run 6', 'run 3', 'run 0'])
    expect(await idsOf(store, { definition: 'other', limit: 4 })).toEqual(['run 11', 'run 9', 'run 7', 'run 5'])
    expect(await idsOf(store, { queue: 'mail', definition: 'convert' })).toEqual(['run 10', 'run 4'])
    expect(await idsOf(store, { queue: 'nowhere' })).toEqual([])
  })
})

it('what is large is kept apart from the rows, and read as what is small is', async () => {
  const path = freshPath()
  const store = await openStore(path)
  const [small, large] = ['"small"', `"${'x'.repeat(10_000)}"`]
  const claim = (token: string) => ({ token, owner: 'o', leaseMs: 60_000, version: null })
  const runs = [small, large].map((input, n) => newRun(`run ${n}`, { input, claim: claim(`token ${n}`) }))
  await enqueue(store, ...runs)
  for (const [n, output] of [large, small].entries()) {
    const settlement = { type: 'succeed', output } as const
    await store.commit([{ type: 'settle', runId: `run ${n}`, token: `token ${n}`, entries: [], settlement }])
  }
  expect(await store.inputs(['run 0', 'run 1'])).toEqual([small, large])
  const endings = await store.endings(['run 0', 'run 1'])
  expect([endings.get('run 0'), endings.get('run 1')]).toEqual([
    { status: 'SUCCESS', output: large },
    { status: 'SUCCESS', output: small },
  ])
  const database = await connect(path)
  expect(database.prepare('select run from perdure_inputs').all()).toEqual([[2]])
  expect(database.prepare('select run from perdure_endings').all()).toEqual([[1]])
  database.close()
})
