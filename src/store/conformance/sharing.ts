/** Sharing: several store objects over one database see each other, and are told of each other's changes. */
import assert from 'node:assert/strict'
import type { Store, StoreCapabilities } from '../contract.ts'
import { applied, CLAIM_LOST, LEASE_MS, newRun, outcome, SUCCEED, suspendUntil } from './makers.ts'
import { claimRequest } from './sources.ts'
import type { Test, World } from './world.ts'

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
    const request = claimRequest(['t2'], { owner: 'worker-2' })
    assert.deepEqual(await other.claim(request), { runs: [], nextAt: null })
    world.clock.pass(LEASE_MS)
    assert.equal((await other.reclaim({ deadOwners: [], limit: 10 })).runs.length, 1)
    assert.equal((await other.claim(request)).runs[0]?.run.id, 'a')
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
  })

  test('the order of acceptance is one for all', async (world) => {
    const other = await connect(world)
    await world.enqueue('a')
    await other.commit([{ type: 'enqueue', commandId: 'o1', runs: [newRun('b')] }])
    await world.enqueue('c')
    assert.deepEqual(await world.claimIds(['t1', 't2', 't3']), ['a', 'b', 'c'])
  })

  test('queues, signals and key-values are one for all', async (world) => {
    const other = await connect(world)
    await world.register('media', { partitioned: true })
    assert.equal((await other.queues())[0]?.partitioned, true)
    await other.changeQueue('media', { partitioned: false })
    await world.enqueue(newRun('a', { queue: 'media', partitionKey: 'eu' }))
    assert.equal((await world.run('a')).lane, '', 'no store remembers what another has changed')
    await world.start('b', 't1')
    await world.wait('b', 't1')
    await world.settle('b', 't1', suspendUntil(null))
    const signal = { type: 'signal', commandId: 's1', key: 'approval', payload: '1' } as const
    assert.deepEqual(await world.commit(signal, other), { type: 'delivered', runId: 'b', woken: true })
    assert.deepEqual(await world.claimIds(['t2']), ['b'])
    await world.kv({ type: 'put', key: 'k', value: '1', hash: '#1' })
    assert.deepEqual(await other.values(['k']), ['1'])
    assert.deepEqual(await other.scan('', null, 10), [{ key: 'k', value: '1' }])
  })

  test('a change by another is announced', async (world) => {
    const other = await connect(world)
    const announced = change(other)
    await world.enqueue('a')
    await announced
    const again = change(other)
    await world.cancel('a')
    await again
    await world.register('media')
    const configured = change(other)
    await world.configure('media', { paused: true })
    await configured
    const signalled = change(other)
    await world.signal('approval', '1')
    await signalled
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
