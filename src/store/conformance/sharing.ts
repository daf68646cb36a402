/** Sharing: several store objects over one database see each other, and are told of each other's changes. */
import assert from 'node:assert/strict'
import type { Store, StoreCapabilities } from '../contract.ts'
import type { Test, World } from './world.ts'
import { applied, CLAIM_LOST, DEFINITION, LEASE_MS, newRun, outcome, SUCCEED } from './world.ts'

export function sharing(test: Test, capabilities: StoreCapabilities): void {
  test('watching can be stopped, also twice', async (world) => {
    const stop = world.store.watch(() => {})
    stop()
    stop()
  })
  if (!capabilities.shared) return

  test('what one store commits, the others see at once', async (world) => {
    const other = await connect(world)
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    assert.equal((await other.runs(['a']))[0]?.status, 'PENDING')
    assert.equal((await other.histories(['a'])).get('a')?.length, 1)
    await other.commit([{ type: 'cancel', commandId: 'c1', runId: 'a' }])
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(1)]), applied({ cancelRequested: true }))
    await world.settle('a', 't1', SUCCEED)
    assert.equal((await other.endings(['a'])).size, 1)
  })

  test('a claim of one is not given to another, and its fence holds there', async (world) => {
    const other = await connect(world)
    await world.enqueue('a')
    await world.claim(['t1'])
    const request = { owner: 'worker-2', tokens: ['t2'], leaseMs: LEASE_MS, definitions: [DEFINITION] }
    assert.deepEqual(await other.claim(request), [])
    world.clock.pass(LEASE_MS)
    assert.equal((await other.reclaim({ deadOwners: [], limit: 10 })).length, 1)
    assert.equal((await other.claim(request))[0]?.run.id, 'a')
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
  })

  test('the order of acceptance is one for all', async (world) => {
    const other = await connect(world)
    await world.enqueue('a')
    await other.commit([{ type: 'enqueue', commandId: 'o1', runs: [newRun('b')] }])
    await world.enqueue('c')
    assert.deepEqual(await world.claimIds(['t1', 't2', 't3']), ['a', 'b', 'c'])
  })

  test('a change by another is announced', async (world) => {
    const other = await connect(world)
    const announced = change(other)
    await world.enqueue('a')
    await announced
    const again = change(other)
    await world.cancel('a')
    await again
  })

  test('who stopped watching is not called any more', async (world) => {
    const other = await connect(world)
    let calls = 0
    other.watch(() => {
      calls += 1
    })()
    const announced = change(other)
    await world.enqueue('a')
    await announced
    assert.equal(calls, 0)
  })

  test('a store that is closed while it is watched lets go, and the other goes on', async (world) => {
    const other = await connect(world)
    other.watch(() => {})
    await other.close()
    await world.enqueue('a')
    assert.deepEqual(await world.claimIds(['t1']), ['a'])
  })
}

async function connect(world: World): Promise<Store> {
  const store = world.connect()
  await store.open()
  return store
}

/** Resolves at the next change that is announced; the runner's own time-out is the bound. */
function change(store: Store): Promise<void> {
  return new Promise((resolve) => {
    const stop = store.watch(() => {
      stop()
      resolve()
    })
  })
}
