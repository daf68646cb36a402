/** Durable calls that the store carries out itself: the action and its record are one, or neither is. */
import assert from 'node:assert/strict'
import type { Action, NewRun } from '../contract.ts'
import { CLAIM_LOST, FAIL, LEASE_MS, newRun, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from } from './sources.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function perform(test: Test): void {
  starts(test)
  refusals(test)
  signals(test)
  resends(test)
  fence(test)
}

function start(id: string, run: Partial<NewRun> = {}): Action {
  return { type: 'start', run: newRun(id, { parentId: 'a', ...run }) }
}

function signal(key: string, payload: string): Action {
  return { type: 'signal', key, payload }
}

function performed(value: unknown, cancelRequested = false) {
  return { type: 'performed', value: JSON.stringify(value), cancelRequested } as const
}

function starts(test: Test): void {
  test('a run is started, and the entry records which', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(100)
    const entry = outcome(0, { verb: 'start', name: 'charge', position: 4 })
    const answer = await world.perform('a', 't1', entry, start('child', { queue: 'media', priority: 2 }))
    assert.deepEqual(answer, performed({ id: 'child', created: true }))
    assert.deepEqual(await world.history('a'), [
      { ...entry, value: '{"id":"child","created":true}', recordedAt: world.clock.now() },
    ])
    assertHas(await world.run('child'), {
      status: 'ENQUEUED',
      queue: 'media',
      priority: 2,
      parentId: 'a',
      createdAt: world.clock.now(),
    })
    assert.deepEqual(await world.store.inputs(['child']), ['{"order":"child"}'])
    assert.deepEqual(await world.claimIds(['t2'], { sources: [from('media')] }), ['child'])
  })

  test('one that exists is recorded as found', async (world) => {
    await world.start('a', 't1')
    await world.enqueue('b', newRun('holder', { queue: 'media', dedup: { id: 'd', policy: 'reject' } }))
    const found = await world.perform('a', 't1', outcome(0), start('b', { kv: [put('k', '1')] }))
    assert.deepEqual(found, performed({ id: 'b', created: false }))
    const run = { queue: 'media', dedup: { id: 'd', policy: 'returnExisting' }, kv: [put('k', '1')] } as const
    const held = await world.perform('a', 't1', outcome(1), start('c', run))
    assert.deepEqual(held, performed({ id: 'holder', created: false }))
    assert.deepEqual(await world.store.runs(['c']), [undefined])
    assert.equal(await world.value('k'), undefined)
  })

  test('what goes with the start goes with it: delay, deduplication, key-values', async (world) => {
    await world.start('a', 't1')
    const dedup = { id: 'd', policy: 'reject' } as const
    const due = { type: 'after', ms: 500 } as const
    await world.perform('a', 't1', outcome(0), start('child', { queue: 'media', dedup, due, kv: [put('k', '"v"')] }))
    assertHas(await world.run('child'), { status: 'DELAYED', dueAt: world.clock.now() + 500, dedupId: 'd' })
    assert.equal(await world.value('k'), '"v"')
    assert.equal((await world.enqueue(newRun('b', { queue: 'media', dedup }))).type, 'deduplicated')
  })

  test('the child is cancelled with its parent', async (world) => {
    await world.start('a', 't1')
    await world.perform('a', 't1', outcome(0), start('child'))
    await world.perform('a', 't1', outcome(1), start('detached', { parentId: null }))
    await world.settle('a', 't1', suspendUntil(null))
    await world.cancel('a')
    const statuses = (await world.store.runs(['child', 'detached'])).map((run) => run?.status)
    assert.deepEqual(statuses, ['CANCELLED', 'ENQUEUED'])
  })
}

function put(key: string, value: string) {
  return { type: 'put', key, value, hash: `#${value}` } as const
}

function refusals(test: Test): void {
  test('a start that is refused records nothing and changes nothing', async (world) => {
    await world.start('a', 't1')
    await world.enqueue('b', newRun('holder', { queue: 'media', dedup: { id: 'd', policy: 'reject' } }))
    await world.wait('a', 't1', { position: 0 })
    const before = await world.everythingOf('a')
    const kv = [put('k', '1')]
    assert.deepEqual(await world.perform('a', 't1', outcome(0), start('b', { inputHash: 'another', kv })), {
      type: 'refused',
      refusal: { type: 'mismatch', id: 'b', definition: 'charge' },
    })
    const dedup = { id: 'd', policy: 'reject' } as const
    assert.deepEqual(await world.perform('a', 't1', outcome(0), start('c', { queue: 'media', dedup, kv })), {
      type: 'refused',
      refusal: { type: 'deduplicated', id: 'c', queue: 'media', dedupId: 'd', holder: 'holder' },
    })
    assert.deepEqual(await world.everythingOf('a'), before)
    assert.deepEqual(await world.store.runs(['c']), [undefined])
    assert.equal(await world.value('k'), undefined)
  })

  test('the position is free for what the caller makes of the refusal', async (world) => {
    await world.start('a', 't1')
    await world.enqueue('b')
    await world.perform('a', 't1', outcome(0), start('b', { inputHash: 'another' }))
    await world.checkpoint('a', 't1', [outcome(0, { failed: true, value: '"mismatch"' })])
    assert.deepEqual(
      (await world.history('a')).map(({ failed, value }) => [failed, value]),
      [[true, '"mismatch"']],
    )
  })
}

function signals(test: Test): void {
  test('a signal is sent, and the entry records what became of it', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    assert.deepEqual(await world.perform('a', 't1', outcome(0), signal('approval', '1')), performed('buffered'))
    assert.deepEqual(await world.perform('a', 't1', outcome(1), signal('approval', '2')), performed('replaced'))
    assert.deepEqual(await world.wait('b', 't2'), { type: 'signalled', payload: '2' })
    await world.wait('b', 't2', { position: 1 })
    assert.deepEqual(await world.perform('a', 't1', outcome(2), signal('approval', '3')), performed('delivered'))
    assert.deepEqual(await world.wait('b', 't2', { position: 1 }), { type: 'signalled', payload: '3' })
    assert.deepEqual(
      (await world.history('a')).map(({ value }) => value),
      ['"buffered"', '"replaced"', '"delivered"'],
    )
  })

  test('the run that is suspended for it is woken', async (world) => {
    await world.start('b', 't2')
    await world.wait('b', 't2')
    await world.settle('b', 't2', suspendUntil(null))
    await world.start('a', 't1')
    world.clock.pass(100)
    assert.deepEqual(await world.perform('a', 't1', outcome(0), signal('approval', '1')), performed('delivered'))
    assert.equal((await world.run('b')).dueAt, world.clock.now())
    assert.deepEqual(await world.claimIds(['t3']), ['b'])
  })

  test('the answer tells that the run was asked to cancel', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a')
    assert.deepEqual(await world.perform('a', 't1', outcome(0), signal('k', '1')), performed('buffered', true))
    assert.deepEqual(
      await world.perform('a', 't1', outcome(1), start('c')),
      performed({ id: 'c', created: true }, true),
    )
  })
}

function resends(test: Test): void {
  test('a start that is resent answers what was recorded, whatever became of the child', async (world) => {
    await world.start('a', 't1')
    const first = await world.perform('a', 't1', outcome(0), start('child', { kv: [put('k', '1')] }))
    await world.commit({ type: 'kv', commandId: 'c1', change: put('k', '2') })
    await world.cancel('child')
    const before = [await world.everythingOf('a'), await world.everythingOf('child')]
    world.clock.pass(100)
    assert.deepEqual(await world.perform('a', 't1', outcome(0), start('child', { kv: [put('k', '1')] })), first)
    assert.deepEqual([await world.everythingOf('a'), await world.everythingOf('child')], before)
    assert.equal(await world.value('k'), '2')
  })

  test('a signal that is resent is not sent twice', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.wait('b', 't2')
    const first = await world.perform('a', 't1', outcome(0), signal('approval', '1'))
    assert.deepEqual(first, performed('delivered'))
    await world.checkpoint('b', 't2', [outcome(0)])
    await world.wait('b', 't2', { position: 1 })
    assert.deepEqual(await world.perform('a', 't1', outcome(0), signal('approval', '1')), first)
    assert.deepEqual(await world.wait('b', 't2', { position: 1 }), { type: 'waiting' })
    assert.equal((await world.history('a')).length, 1)
  })

  test('so does the next delivery, which has read the record', async (world) => {
    await world.start('a', 't1')
    const first = await world.perform('a', 't1', outcome(0), start('child'))
    await world.settle('a', 't1', RELEASE)
    await world.claim(['t2', 't3'])
    const token = (await world.run('a')).token ?? ''
    assert.deepEqual(await world.perform('a', token, outcome(0), start('child')), first)
  })
}

function fence(test: Test): void {
  test('without the live claim nothing is started, sent or recorded', async (world) => {
    await world.start('a', 't1')
    await world.start('ended', 't2')
    await world.settle('ended', 't2', SUCCEED)
    await world.start('failed', 't3')
    await world.settle('failed', 't3', FAIL)
    await world.enqueue('enqueued')
    for (const [id, token] of [
      ['a', 'another'],
      ['ended', 't2'],
      ['failed', 't3'],
      ['enqueued', 't1'],
      ['nowhere', 't1'],
    ] as const) {
      assert.deepEqual(await world.perform(id, token, outcome(0), start('child', { kv: [put('k', '1')] })), CLAIM_LOST)
      assert.deepEqual(await world.perform(id, token, outcome(0), signal('approval', '1')), CLAIM_LOST)
      assert.deepEqual(await world.history(id), [])
    }
    assert.deepEqual(await world.store.runs(['child']), [undefined])
    assert.equal(await world.value('k'), undefined)
    assert.deepEqual(await world.signal('approval', '2'), { type: 'buffered' })
  })

  test('the zombie of a claim that was reclaimed starts nothing (D-35)', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.perform('a', 't1', outcome(0), start('child')), CLAIM_LOST)
    await world.claim(['t2'])
    assert.deepEqual(await world.perform('a', 't1', outcome(0), start('child')), CLAIM_LOST)
    assert.deepEqual(
      await world.perform('a', 't2', outcome(0), start('child')),
      performed({ id: 'child', created: true }),
    )
  })
}
