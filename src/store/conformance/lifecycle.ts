/** Opening and closing, and what a store says of itself. */
import assert from 'node:assert/strict'
import { realClock } from '../../core/clock.ts'
import { ConfigurationError, StoreClockError, StoreClosedError } from '../../core/errors.ts'
import type { StoreCapabilities } from '../contract.ts'
import { LEASE_MS, newProcess, newRun, OWNER, outcome, SUCCEED, suspendUntil } from './makers.ts'
import { ManualClock } from './manual-clock.ts'
import { from, runsOf } from './sources.ts'
import type { Test } from './world.ts'

const SIGNAL = { type: 'signal', commandId: 's1', key: 'approval', payload: '2' } as const

export function lifecycle(test: Test, capabilities: StoreCapabilities): void {
  test('a store says what it is', async (world) => {
    assert.deepEqual(world.store.capabilities, capabilities)
    assert.ok(world.store.name.length > 0)
    assert.equal(world.store.clock, world.clock)
  })

  test('opening again, or several times at once, changes nothing', async (world) => {
    await world.enqueue('a')
    await world.store.open()
    await Promise.all([world.store.open(), world.store.open(), world.store.open()])
    assert.equal((await world.run('a')).status, 'ENQUEUED')
  })

  test('migrating changes nothing of what is up to date, and opens nothing', async (world) => {
    await world.enqueue('a')
    await world.store.migrate()
    assert.equal((await world.run('a')).status, 'ENQUEUED')
    if (!capabilities.shared) return
    const other = world.connect()
    await other.migrate()
    await assert.rejects(other.runs(['a']), StoreClosedError)
  })

  test('the clock of a store that has been opened cannot be changed', async (world) => {
    const other = new ManualClock()
    assert.throws(() => world.store.setClock(other), ConfigurationError)
    assert.equal(world.store.clock, world.clock)
    await world.store.close()
    assert.throws(() => world.store.setClock(other), ConfigurationError)
    await world.store.open()
  })

  test('closing twice, and closing what was never opened, is no trouble', async (world) => {
    const other = world.connect()
    await other.close()
    await world.store.close()
    await world.store.close()
    await world.store.open()
    assert.deepEqual(await world.store.processes(), [])
  })

  test('a store that was closed and opened again goes on where it was', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    await world.enqueue('b')
    const before = [await world.everythingOf('a'), await world.everythingOf('b')]
    await world.store.close()
    await world.store.open()
    assert.deepEqual([await world.everythingOf('a'), await world.everythingOf('b')], before)
    await world.settle('a', 't1', SUCCEED)
    await world.enqueue('c')
    assert.deepEqual(await world.claimIds(['t2', 't3']), ['b', 'c'])
  })

  test('on a mock clock there is no lease thread', async (world) => {
    const callbacks = { onRenewed: () => {}, onFailed: () => {} }
    assert.equal(world.store.leaseThread({ leaseMs: 1_000, maxBlockedMs: 1_000, ...callbacks }), null)
  })

  if (capabilities.durable) durable(test)
}

function durable(test: Test): void {
  test('another store object over the same data finds everything', async (world) => {
    await world.start('held', 't1', { timeoutMs: 5_000 })
    await world.checkpoint('held', 't1', [outcome(0), outcome(1, { failed: true })])
    await world.start('ended', 't2')
    await world.settle('ended', 't2', SUCCEED)
    await world.start('waiting', 't3')
    await world.settle('waiting', 't3', suspendUntil(world.clock.now() + 100))
    await world.start('again', 't4')
    await world.settle('again', 't4', { type: 'dead', failure: { kind: 'crashed', error: null } })
    await world.requeue('again')
    await world.enqueue('enqueued', newRun('queued', { queue: 'media' }))
    await world.store.registerProcess(newProcess(OWNER))
    const ids = ['held', 'ended', 'waiting', 'again', 'enqueued', 'queued']
    const before = await Promise.all(ids.map((id) => world.everythingOf(id)))
    const processes = await world.store.processes()
    await world.store.close()

    const reopened = world.connect()
    await reopened.open()
    assert.deepEqual(await reopened.processes(), processes)
    assert.equal(await reopened.nextExpiry(), world.clock.now() + LEASE_MS)
    await reopened.close()
    await world.store.open()
    assert.deepEqual(await Promise.all(ids.map((id) => world.everythingOf(id))), before)
  })

  test('so it does with what queues, waits, signals and key-values say', async (world) => {
    const media = await world.register('media', {
      globalConcurrency: 2,
      rateLimit: { limit: 2, periodMs: 60_000 },
      partitioned: true,
      retention: { success: 1, error: null, dead: 2, cancelled: null },
    })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c'], { partitionKey: 'eu', dedup: null }))
    const dedup = { id: 'd', policy: 'reject' } as const
    await world.enqueue(newRun('d', { queue: 'media', partitionKey: 'eu', dedup, due: { type: 'after', ms: 5_000 } }))
    const sources = [from('media')]
    await world.claim(['t1', 't2'], { sources, version: 'v1' })
    await world.wait('a', 't1')
    await world.settle('a', 't1', suspendUntil(null, { position: 1, runId: 'b' }))
    await world.signal('early', '1')
    await world.kv({ type: 'put', key: 'k', value: '1', hash: '#1' })
    const ids = ['a', 'b', 'c', 'd']
    const before = await Promise.all(ids.map((id) => world.store.situation(id)))
    await world.store.close()

    const reopened = world.connect()
    await reopened.open()
    assert.deepEqual(await reopened.queues(), [media])
    assert.deepEqual(await Promise.all(ids.map((id) => reopened.situation(id))), before)
    assert.deepEqual(await world.claimIds(['t3'], { sources, version: 'v1' }, reopened), [], 'at both limits')
    assert.equal((await world.commit({ ...SIGNAL, key: 'early' }, reopened)).type, 'replaced')
    assert.equal((await world.commit({ ...SIGNAL, commandId: 's2' }, reopened)).type, 'delivered')
    assert.deepEqual(await world.claimIds(['t4'], { sources, version: 'v2' }, reopened), [])
    assert.deepEqual(await world.claimIds(['t5'], { sources, version: 'v1' }, reopened), ['a'])
    const again = { type: 'enqueue', commandId: 'e', runs: [newRun('e', { queue: 'media', dedup })] } as const
    assert.equal((await world.commit(again, reopened)).type, 'deduplicated')
    const change = { type: 'deleteIf', key: 'k', expected: '#1' } as const
    assert.deepEqual(await world.commit({ type: 'kv', commandId: 'k', change }, reopened), {
      type: 'kv',
      applied: true,
    })
    await reopened.close()
    await world.store.open()
  })

  test('calls on a store that is closed are refused', async (world) => {
    await world.store.close()
    await assert.rejects(world.store.commit([]), StoreClosedError)
    await assert.rejects(world.store.runs(['a']), StoreClosedError)
    await assert.rejects(world.claim(['t1']), StoreClosedError)
    await assert.rejects(world.store.renew([], 1_000), StoreClosedError)
    await assert.rejects(world.store.queues(), StoreClosedError)
    await assert.rejects(world.register('media'), StoreClosedError)
    await assert.rejects(world.store.values(['k']), StoreClosedError)
    await assert.rejects(world.store.sweep({ definitions: [], limit: 1 }), StoreClosedError)
  })

  test('data that lives on a mock clock is refused to the real one', async (world) => {
    const other = world.connect()
    other.setClock(realClock)
    await assert.rejects(other.open(), StoreClockError)
    await world.enqueue('a')
    assert.equal((await world.run('a')).createdAt, world.clock.now(), 'and goes on living there')
  })
}
