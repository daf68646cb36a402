/** The lists of lanes that claims go by are right after whatever may change them: nothing is forgotten in a lane. */
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/store/conformance/manual-clock.ts'
import type { NewQueue, Settlement, Store } from '../../../src/store/contract.ts'
import { freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newQueue, newRun } from './requests.ts'

const partitioned = (knobs: Partial<NewQueue> = {}): NewQueue => newQueue('media', { partitioned: true, ...knobs })
const inLane = (partitionKey: string, ...ids: readonly string[]) =>
  ids.map((id) => newRun(id, { queue: 'media', partitionKey }))

let tokens = 0
async function claimIds(store: Store, count: number): Promise<readonly string[]> {
  const fresh = Array.from({ length: count }, () => `token ${tokens++}`)
  const { runs } = await store.claim(newClaim(fresh, { queue: 'media' }))
  return runs.map(({ run }) => run.id)
}

async function open(queue: NewQueue): Promise<{ readonly store: Store; readonly clock: ManualClock }> {
  const clock = new ManualClock()
  const store = await openStore(freshPath(), clock)
  await store.registerQueues([queue])
  return { store, clock }
}

describe('lanes that were found closed', () => {
  it('open when the limit is raised', async () => {
    const { store } = await open(partitioned({ globalConcurrency: 1 }))
    await enqueue(store, ...inLane('eu', 'a', 'b'))
    expect(await claimIds(store, 5)).toEqual(['a'])
    expect(await claimIds(store, 5)).toEqual([])
    await store.changeQueue('media', { globalConcurrency: 2 })
    expect(await claimIds(store, 5)).toEqual(['b'])
  })

  it('open a period after the clock was set back, not when they would have', async () => {
    const { store, clock } = await open(partitioned({ rateLimit: { limit: 1, periodMs: 1_000 } }))
    await enqueue(store, ...inLane('eu', 'a', 'b'))
    expect(await claimIds(store, 5)).toEqual(['a'])
    clock.pass(-3_600_000)
    expect(await claimIds(store, 5)).toEqual([])
    clock.pass(1_000)
    expect(await claimIds(store, 5)).toEqual(['b'])
  })
})

describe('turns', () => {
  it('go on from one claim to the next, behind those who came meanwhile', async () => {
    const { store } = await open(partitioned())
    await enqueue(store, ...inLane('eu', 'eu 1', 'eu 2', 'eu 3'), ...inLane('us', 'us 1', 'us 2'))
    expect(await claimIds(store, 1)).toEqual(['eu 1'])
    await enqueue(store, ...inLane('cn', 'cn 1'))
    expect(await claimIds(store, 2)).toEqual(['us 1', 'eu 2'])
    expect(await claimIds(store, 3)).toEqual(['cn 1', 'us 2', 'eu 3'])
  })

  it('are lost by a lane whose last run was cancelled', async () => {
    const { store } = await open(partitioned())
    await enqueue(store, ...inLane('eu', 'eu 1'), ...inLane('us', 'us 1'))
    await store.commit([{ type: 'cancel', commandId: 'c', runId: 'eu 1' }])
    await enqueue(store, ...inLane('eu', 'eu 2'))
    expect(await claimIds(store, 2)).toEqual(['us 1', 'eu 2'])
  })
})

it('suspended runs of a queue that becomes partitioned are resumed in their lanes', async () => {
  const { store, clock } = await open(newQueue('media'))
  await enqueue(store, ...inLane('eu', 'a'), ...inLane('us', 'b'))
  const settlement: Settlement = { type: 'suspend', wakeAt: clock.now() + 5, children: [] }
  const { runs } = await store.claim(newClaim(['first', 'second'], { queue: 'media' }))
  for (const { run, token } of runs) {
    await store.commit([{ type: 'settle', runId: run.id, token, entries: [], settlement }])
  }
  await store.changeQueue('media', { partitioned: true })
  clock.pass(5)
  expect(await claimIds(store, 5)).toEqual(['a', 'b'])
})
