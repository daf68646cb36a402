/** Staged effects: committed with the entry that records their step, once, or not at all (Q38). */
import assert from 'node:assert/strict'
import type { Effect, NewRun } from '../contract.ts'
import { applied, CLAIM_LOST, FAIL, LEASE_MS, newRun, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

export function effects(test: Test): void {
  together(test)
  once(test)
  notAtAll(test)
  refusals(test)
}

function put(key: string, value: string): Effect {
  return { type: 'put', key, value, hash: `#${value}` }
}

function start(id: string, run: Partial<NewRun> = {}): Effect {
  return { type: 'start', run: newRun(id, run) }
}

function signal(key: string, payload: string): Effect {
  return { type: 'signal', key, payload }
}

function step(seq: number, ...staged: readonly Effect[]) {
  return outcome(seq, { effects: staged })
}

async function assertNone(world: World): Promise<void> {
  assert.equal(await world.value('k'), undefined)
  assert.deepEqual(await world.store.runs(['child']), [undefined])
  assert.deepEqual(await world.signal('approval', '"later"'), { type: 'buffered' })
}

const ALL = [put('k', '1'), start('child'), signal('approval', '1')]

function together(test: Test): void {
  test('a checkpoint applies what its entries carry, in their order', async (world) => {
    await world.start('a', 't1')
    await world.kv({ type: 'put', key: 'old', value: '1', hash: '#1' })
    world.clock.pass(100)
    const entries = [
      step(0, put('k', '1'), put('k', '2'), { type: 'delete', key: 'old' }, put('x', '1')),
      step(1, put('k', '3'), { type: 'delete', key: 'x' }, { type: 'delete', key: 'never there' }),
    ]
    assert.deepEqual(await world.checkpoint('a', 't1', entries), applied())
    assert.deepEqual(await world.store.values(['k', 'old', 'x']), ['3', undefined, undefined])
    assert.deepEqual(
      await world.history('a'),
      [0, 1].map((seq) => ({ ...outcome(seq), recordedAt: world.clock.now() })),
      'the history holds the outcome, not the effects',
    )
  })

  test('a put can be compared with afterwards', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [step(0, put('k', '1'))])
    assert.equal(await world.kv({ type: 'deleteIf', key: 'k', expected: '#1' }), true)
  })

  test('follow-up runs are started as they were asked for', async (world) => {
    await world.register('media', { priorityEnabled: true, partitioned: true })
    await world.start('a', 't1')
    world.clock.pass(100)
    const run = { queue: 'media', priority: 3, partitionKey: 'eu', dedup: { id: 'd', policy: 'reject' } } as const
    const effect = start('child', { ...run, parentId: 'a', kv: [{ type: 'put', key: 'k', value: '1', hash: '#1' }] })
    assert.deepEqual(await world.checkpoint('a', 't1', [step(0, effect)]), applied({ rippled: true }))
    assertHas(await world.run('child'), {
      status: 'ENQUEUED',
      parentId: 'a',
      lane: 'eu',
      rank: 3,
      dedupId: 'd',
      createdAt: world.clock.now(),
    })
    assert.equal(await world.value('k'), '1')
    assert.deepEqual(await world.claimIds(['t2'], { sources: [from('media')] }), ['child'])
  })

  test('signals are delivered, or kept', async (world) => {
    await world.start('b', 't2')
    await world.wait('b', 't2')
    await world.settle('b', 't2', suspendUntil(null))
    await world.start('a', 't1')
    world.clock.pass(100)
    const entries = [step(0, signal('approval', '1'), signal('other', '2'))]
    assert.deepEqual(await world.checkpoint('a', 't1', entries), applied({ rippled: true }))
    assert.equal((await world.run('b')).dueAt, world.clock.now())
    await world.claim(['t3'])
    assert.deepEqual(await world.wait('b', 't3'), { type: 'signalled', payload: '1' })
    assert.deepEqual(await world.wait('b', 't3', { position: 1, key: 'other' }), { type: 'signalled', payload: '2' })
  })

  test('effects that touch no other run say so', async (world) => {
    await world.start('a', 't1')
    const entries = [step(0, put('k', '1'), { type: 'delete', key: 'x' }, signal('nobody waits', '1'))]
    assert.deepEqual(await world.checkpoint('a', 't1', entries), applied())
  })

  for (const [name, settlement, status] of [
    ['a success', SUCCEED, 'SUCCESS'],
    ['a failure that carries them', FAIL, 'ERROR'],
    ['a suspension', suspendUntil(null), 'WAITING'],
    ['a hand-back', RELEASE, 'ENQUEUED'],
  ] as const) {
    test(`${name} applies those of its entries`, async (world) => {
      await world.start('a', 't1')
      const answer = await world.settle('a', 't1', settlement, [step(0, ...ALL)])
      assert.ok(answer.type === 'applied')
      assertHas(answer, { status, rippled: true, refusals: [] })
      assert.equal(await world.value('k'), '1')
      assert.equal((await world.run('child')).status, 'ENQUEUED')
      assert.deepEqual(await world.signal('approval', '2'), { type: 'replaced' })
    })
  }

  test('so does a settlement that a cancellation outweighs: its steps did run', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a')
    await world.settle('a', 't1', SUCCEED, [step(0, put('k', '1'))])
    assert.equal((await world.run('a')).status, 'CANCELLED')
    assert.equal(await world.value('k'), '1')
  })

  test('a timer may carry some as well', async (world) => {
    await world.start('a', 't1')
    const timer = outcome(0, { type: 'timer', effects: [put('k', '1')] })
    assert.deepEqual(await world.wait('a', 't1', { position: 0, entries: [timer] }), { type: 'waiting' })
    assert.equal(await world.value('k'), '1')
  })
}

function once(test: Test): void {
  test('an entry that is resent applies nothing again; a new one beside it does', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [step(0, ...ALL)])
    await world.kv({ type: 'put', key: 'k', value: '"mine"', hash: '#' })
    await world.cancel('child')
    await world.start('b', 't2')
    await world.wait('b', 't2')
    await world.wait('b', 't2', { position: 1 })
    assert.deepEqual(await world.checkpoint('a', 't1', [step(0, ...ALL), step(1, put('x', '1'))]), applied())
    assert.equal(await world.value('k'), '"mine"')
    assert.equal((await world.run('child')).status, 'CANCELLED')
    assert.deepEqual(await world.wait('b', 't2', { position: 1 }), { type: 'waiting' })
    assert.equal(await world.value('x'), '1')
  })

  test('a settlement that brings an entry again applies nothing of it', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [step(0, put('k', '1'))])
    await world.kv({ type: 'delete', key: 'k' })
    await world.settle('a', 't1', SUCCEED, [step(0, put('k', '1'))])
    assert.equal(await world.value('k'), undefined)
  })

  test('a settlement that is resent applies nothing, and has nothing to tell', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', SUCCEED, [step(0, ...ALL)])
    await world.kv({ type: 'delete', key: 'k' })
    const answer = await world.settle('a', 't1', SUCCEED, [step(0, ...ALL)])
    assert.ok(answer.type === 'applied')
    assertHas(answer, { status: 'SUCCESS', ending: null, refusals: [] })
    assert.equal(await world.value('k'), undefined)
    assert.equal((await world.store.list({ limit: 10 })).length, 2)
  })

  test('after a requeue the step runs again, and so do its effects', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0, { failed: true, effects: [put('k', '1')] })])
    await world.settle('a', 't1', FAIL)
    await world.requeue('a')
    await world.claim(['t2'])
    await world.checkpoint('a', 't2', [step(0, put('k', '2'))])
    assert.equal(await world.value('k'), '2')
  })
}

function notAtAll(test: Test): void {
  test('without the live claim nothing is applied', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.checkpoint('a', 't1', [step(0, ...ALL)]), CLAIM_LOST)
    await world.claim(['t2'])
    assert.deepEqual(await world.checkpoint('a', 't1', [step(0, ...ALL)]), CLAIM_LOST)
    assert.deepEqual(await world.settle('a', 't1', SUCCEED, [step(0, ...ALL)]), CLAIM_LOST)
    assert.deepEqual(
      await world.wait('a', 't1', { entries: [outcome(0, { type: 'timer', effects: ALL })] }),
      CLAIM_LOST,
    )
    await assertNone(world)
  })

  test('an entry that is refused as another one applies nothing', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    await assert.rejects(world.checkpoint('a', 't1', [outcome(0, { value: '"another"', effects: ALL })]))
    await assert.rejects(world.checkpoint('a', 't1', [step(1, ...ALL), outcome(0, { value: '"another"' })]))
    await assertNone(world)
    assert.equal((await world.history('a')).length, 1)
  })

  test('a wait that is refused records and applies nothing', async (world) => {
    await world.start('b', 't2')
    await world.wait('b', 't2', { key: 'taken' })
    await world.start('a', 't1')
    await world.wait('a', 't1', { key: 'taken', entries: [outcome(0, { type: 'timer', effects: ALL })] })
    await assertNone(world)
  })
}

function refusals(test: Test): void {
  test('a follow-up that is refused affects only itself', async (world) => {
    await world.enqueue('b', newRun('holder', { queue: 'media', dedup: { id: 'd', policy: 'reject' } }))
    await world.start('a', 't1')
    const dedup = { id: 'd', policy: 'reject' } as const
    const kv = [{ type: 'put', key: 'refused', value: '1', hash: '#1' }] as const
    const entries = [
      step(0, put('k', '1'), start('b', { inputHash: 'another', kv }), start('child')),
      step(1, start('c', { queue: 'media', dedup, kv }), put('k', '2'), signal('approval', '1')),
    ]
    const mismatch = { type: 'mismatch', id: 'b', definition: 'charge' } as const
    const held = { type: 'deduplicated', id: 'c', queue: 'media', dedupId: 'd', holder: 'holder' } as const
    assert.deepEqual(await world.checkpoint('a', 't1', entries), applied({ rippled: true, refusals: [mismatch, held] }))
    assert.equal((await world.history('a')).length, 2)
    assert.deepEqual(await world.store.values(['k', 'refused']), ['2', undefined])
    assert.deepEqual(
      (await world.store.runs(['child', 'c'])).map((run) => run?.id),
      ['child', undefined],
    )
    assert.deepEqual(await world.signal('approval', '2'), { type: 'replaced' })
  })

  test('the settlement that brings them ends its run all the same', async (world) => {
    await world.enqueue('b')
    await world.start('a', 't1')
    const ending = { status: 'SUCCESS', output: '"done"' } as const
    assert.deepEqual(
      await world.settle('a', 't1', SUCCEED, [step(0, start('b', { definition: 'refund' }))]),
      applied({ status: 'SUCCESS', ending, refusals: [{ type: 'mismatch', id: 'b', definition: 'charge' }] }),
    )
  })

  test('one that finds its run, or the holder of its id, is no refusal', async (world) => {
    await world.enqueue('b', newRun('holder', { queue: 'media', dedup: { id: 'd', policy: 'reject' } }))
    await world.start('a', 't1')
    const dedup = { id: 'd', policy: 'returnExisting' } as const
    const kv = [{ type: 'put', key: 'k', value: '1', hash: '#1' }] as const
    const entries = [step(0, start('b', { kv }), start('c', { queue: 'media', dedup, kv }))]
    assert.deepEqual(await world.checkpoint('a', 't1', entries), applied())
    assert.deepEqual(await world.store.runs(['c']), [undefined])
    assert.equal(await world.value('k'), undefined)
  })
}
