/** Signals: to every open wait on their key, or else kept, the newest, for the first that comes. */
import assert from 'node:assert/strict'
import { outcome, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'

const DAY_MS = 24 * 3_600_000

export function signal(test: Test): void {
  buffering(test)
  resends(test)
}

function buffering(test: Test): void {
  test('without a wait the newest is kept', async (world) => {
    assert.deepEqual(await world.signal('approval', '1'), { type: 'buffered' })
    assert.deepEqual(await world.signal('approval', '2'), { type: 'replaced' })
    assert.deepEqual(await world.signal('approval', '3'), { type: 'replaced' })
    assert.deepEqual(await world.signal('Approval', '4'), { type: 'buffered' }, 'another key')
    await world.start('a', 't1')
    assert.deepEqual(await world.wait('a', 't1'), { type: 'signalled', payload: '3' })
    assert.deepEqual(await world.signal('approval', '5'), { type: 'buffered' }, 'it was taken out')
  })

  test('it is kept for as long as nobody waits', async (world) => {
    await world.signal('approval', '1')
    world.clock.pass(400 * DAY_MS)
    await world.sweep([{ name: 'charge', retention: null }])
    await world.store.close()
    await world.store.open()
    await world.start('a', 't1')
    assert.deepEqual(await world.wait('a', 't1'), { type: 'signalled', payload: '1' })
  })

  test('a delivered signal is kept by its wait, whatever becomes of later ones', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.signal('approval', '1')
    await world.signal('approval', '2')
    await world.signal('approval', '3')
    assert.deepEqual(await world.wait('a', 't1'), { type: 'signalled', payload: '1' })
    await world.checkpoint('a', 't1', [outcome(0)])
    assert.deepEqual(await world.wait('a', 't1', { position: 1 }), { type: 'signalled', payload: '3' })
  })

  test('an empty payload is a payload', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1', { position: 1, key: 'open' })
    await world.signal('open', '')
    await world.signal('buffered', '')
    assert.deepEqual(await world.wait('a', 't1', { position: 1, key: 'open' }), { type: 'signalled', payload: '' })
    assert.deepEqual(await world.wait('a', 't1', { position: 2, key: 'buffered' }), { type: 'signalled', payload: '' })
    const found = await world.store.signals([{ runId: 'a', position: 1 }])
    assert.deepEqual([...found], [[0, '']])
  })
}

function resends(test: Test): void {
  test('a delivery that is resent is not delivered again, and not kept for later', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    const first = await world.signal('approval', '1', 'c1')
    assert.deepEqual(await world.signal('approval', '1', 'c1'), first)
    await world.checkpoint('a', 't1', [outcome(0)])
    assert.deepEqual(await world.signal('approval', '1', 'c1'), first)
    assert.deepEqual(await world.wait('a', 't1', { position: 1 }), { type: 'waiting' })
    assert.deepEqual(await world.signal('approval', '1', 'c1'), first)
    assert.deepEqual(await world.wait('a', 't1', { position: 1 }), { type: 'waiting' })
  })

  test('one that woke its run says so again, and wakes it no more', async (world) => {
    await world.start('a', 't1')
    await world.wait('a', 't1')
    await world.settle('a', 't1', suspendUntil(null))
    const first = await world.signal('approval', '1', 'c1')
    assert.deepEqual(first, { type: 'delivered', runId: 'a', woken: true })
    await world.claim(['t2'])
    await world.wait('a', 't2', { position: 1, key: 'approval' })
    await world.settle('a', 't2', suspendUntil(null), [outcome(0)])
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.signal('approval', '1', 'c1'), first)
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('a signal that was kept and is resent is not kept a second time', async (world) => {
    assert.deepEqual(await world.signal('approval', '1', 'c1'), { type: 'buffered' })
    assert.deepEqual(await world.signal('approval', '2', 'c2'), { type: 'replaced' })
    assert.deepEqual(await world.signal('approval', '1', 'c1'), { type: 'buffered' })
    await world.start('a', 't1')
    assert.deepEqual(await world.wait('a', 't1'), { type: 'signalled', payload: '2' })
    assert.deepEqual(await world.signal('approval', '2', 'c2'), { type: 'replaced' })
    assert.deepEqual(await world.wait('a', 't1', { position: 1 }), { type: 'waiting' })
  })

  test('a resend is recognised for a day, and for longer only until the next sweep', async (world) => {
    const sweep = () => world.sweep([])
    await world.signal('approval', '1', 'c1')
    world.clock.pass(DAY_MS - 1_000)
    await sweep()
    await world.signal('approval', '1', 'c1')
    await world.start('a', 't1')
    await world.wait('a', 't1')
    assert.deepEqual(await world.signal('approval', '1', 'c1'), { type: 'buffered' }, 'not delivered: it was before')
    assert.deepEqual(await world.wait('a', 't1', { position: 1 }), { type: 'waiting' })
    world.clock.pass(2_000)
    await sweep()
    assert.equal((await world.signal('approval', '2', 'c1')).type, 'delivered')
  })
}
