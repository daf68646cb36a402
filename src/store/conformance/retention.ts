/** Retention: runs that have ended for longer than they are kept go, whole, and nothing else does (Q45, J30). */
import assert from 'node:assert/strict'
import type { NewRun, Settlement, SweepOutcome, SweepRequest } from '../contract.ts'
import type { Retention } from '../records.ts'
import { accepted, DEFINITION, FAIL, LEASE_MS, newRun, numbered, outcome, SUCCEED, suspendUntil } from './makers.ts'
import { from } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

export function retention(test: Test): void {
  boundaries(test)
  whose(test)
  spared(test)
  limits(test)
  whole(test)
}

function keep(fields: Partial<Retention> = {}): Retention {
  return { success: null, error: null, dead: null, cancelled: null, ...fields }
}
const ALL_FOR_A_SECOND = keep({ success: 1_000, error: 1_000, dead: 1_000, cancelled: 1_000 })

const ENDS: Readonly<Record<keyof Retention, Settlement>> = {
  success: SUCCEED,
  error: FAIL,
  dead: { type: 'dead', failure: { kind: 'permanent', error: null } },
  cancelled: { type: 'cancel', failure: { kind: 'cancelled', error: null } },
}

const CHARGE_FOR_A_SECOND = [{ name: DEFINITION, retention: ALL_FOR_A_SECOND }]

function sweep(world: World, definitions: SweepRequest['definitions'] = CHARGE_FOR_A_SECOND): Promise<SweepOutcome> {
  return world.sweep(definitions)
}

/** The definition of the tests, kept so. */
function kept(fields: Partial<Retention>): SweepRequest['definitions'] {
  return [{ name: DEFINITION, retention: keep(fields) }]
}

async function end(
  world: World,
  id: string,
  how: keyof Retention = 'success',
  run: Partial<NewRun> = {},
): Promise<void> {
  await world.start(id, id, run)
  await world.settle(id, id, ENDS[how])
}

async function there(world: World, ...ids: readonly string[]): Promise<readonly string[]> {
  return (await world.store.runs(ids)).flatMap((run) => (run === undefined ? [] : [run.id]))
}

function boundaries(test: Test): void {
  for (const how of ['success', 'error', 'dead', 'cancelled'] as const) {
    test(`a run that ended '${how}' is kept exactly so long, and goes a millisecond later`, async (world) => {
      for (const other of ['success', 'error', 'dead', 'cancelled'] as const) await end(world, other, other)
      const only = kept({ [how]: 1_000 })
      const removableAt = world.clock.now() + 1_001
      assert.deepEqual(await sweep(world, only), { removed: 0, nextAt: removableAt })
      world.clock.pass(1_000)
      assert.deepEqual(await sweep(world, only), { removed: 0, nextAt: removableAt })
      world.clock.pass(1)
      assert.deepEqual(await sweep(world, only), { removed: 1, nextAt: null })
      const left = ['success', 'error', 'dead', 'cancelled'].filter((other) => other !== how)
      assert.deepEqual(await there(world, 'success', 'error', 'dead', 'cancelled'), left)
      world.clock.pass(400 * 24 * 3_600_000)
      assert.deepEqual(await sweep(world, only), { removed: 0, nextAt: null }, 'the others are kept for ever')
    })
  }

  test('each status has its own span, and nextAt is the first that is over', async (world) => {
    for (const how of ['success', 'error', 'dead', 'cancelled'] as const) await end(world, how, how)
    const now = world.clock.now()
    const each = kept({ success: 4_000, error: 3_000, dead: 2_000, cancelled: 1_000 })
    const removed: string[] = []
    for (let { nextAt } = await sweep(world, each); nextAt !== null; ) {
      removed.push(`${nextAt - now}`)
      world.clock.pass(nextAt - world.clock.now())
      const swept = await sweep(world, each)
      assert.equal(swept.removed, 1)
      nextAt = swept.nextAt
    }
    assert.deepEqual(removed, ['1001', '2001', '3001', '4001'])
  })

  test('a span of nothing removes as soon as time has passed', async (world) => {
    await end(world, 'a')
    assert.deepEqual(await sweep(world, kept({ success: 0 })), { removed: 0, nextAt: world.clock.now() + 1 })
    world.clock.pass(1)
    assert.deepEqual(await sweep(world, kept({ success: 0 })), { removed: 1, nextAt: null })
  })

  test('it counts from the end, not from the start or the delay (B-16)', async (world) => {
    await world.enqueue(newRun('a', { queue: 'media', due: { type: 'after', ms: 30 * 24 * 3_600_000 } }))
    world.clock.pass(30 * 24 * 3_600_000)
    await sweep(world)
    assert.deepEqual(await world.claimIds(['t1'], { sources: [from('media')] }), ['a'])
    world.clock.pass(5_000)
    await world.settle('a', 't1', SUCCEED)
    world.clock.pass(1_000)
    assert.equal((await sweep(world)).removed, 0)
    world.clock.pass(1)
    assert.equal((await sweep(world)).removed, 1)
  })
}

function whose(test: Test): void {
  test('a definition without retention has that of the queue its run was in', async (world) => {
    await world.register('short', { retention: keep({ success: 1_000 }) })
    await world.register('long', { retention: keep({ success: 5_000 }) })
    await world.register('ever')
    for (const queue of ['short', 'long', 'ever', 'unregistered']) {
      await world.enqueue(newRun(queue, { queue }))
      await world.claim([queue], { sources: [from(queue)] })
      await world.settle(queue, queue, SUCCEED)
    }
    await end(world, 'internal')
    const now = world.clock.now()
    const definitions = [{ name: DEFINITION, retention: null }]
    const ids = ['short', 'long', 'ever', 'unregistered', 'internal']
    assert.deepEqual(await sweep(world, definitions), { removed: 0, nextAt: now + 1_001 })
    world.clock.pass(1_001)
    assert.deepEqual(await sweep(world, definitions), { removed: 1, nextAt: now + 5_001 })
    assert.deepEqual(await there(world, ...ids), ids.slice(1))
    world.clock.pass(4_000)
    assert.deepEqual(await sweep(world, definitions), { removed: 1, nextAt: null })
    assert.deepEqual(await there(world, ...ids), ids.slice(2))
    await world.configure('ever', { retention: keep({ success: 0 }) })
    assert.deepEqual(await sweep(world, definitions), { removed: 1, nextAt: null })
  })

  test('that of the definition beats that of the queue, as a whole', async (world) => {
    await world.register('media', { retention: ALL_FOR_A_SECOND })
    const media = { sources: [from('media')] }
    for (const how of ['success', 'error'] as const) {
      await world.enqueue(newRun(how, { queue: 'media' }))
      await world.claim([how], media)
      await world.settle(how, how, ENDS[how])
    }
    world.clock.pass(2_000)
    assert.equal((await sweep(world, kept({}))).removed, 0, 'null is for ever, not a gap for the queue to fill')
    assert.deepEqual(await sweep(world, kept({ error: 1_000 })), { removed: 1, nextAt: null })
    assert.deepEqual(await there(world, 'success', 'error'), ['success'])
  })

  test('runs of definitions that are not named are left alone', async (world) => {
    await world.register('media', { retention: ALL_FOR_A_SECOND })
    await end(world, 'a')
    await end(world, 'b', 'success', { definition: 'refund' })
    await world.enqueue(newRun('c', { queue: 'media', definition: 'refund' }))
    await world.cancel('c')
    world.clock.pass(5_000)
    assert.deepEqual(await sweep(world, []), { removed: 0, nextAt: null })
    assert.deepEqual(await sweep(world), { removed: 1, nextAt: null })
    assert.deepEqual(await there(world, 'a', 'b', 'c'), ['b', 'c'])
    const definitions = ['refund', DEFINITION, 'unknown'].map((name) => ({ name, retention: ALL_FOR_A_SECOND }))
    assert.deepEqual(await sweep(world, definitions), { removed: 2, nextAt: null })
  })
}

function spared(test: Test): void {
  test('a run that has not ended is never removed, however old', async (world) => {
    const year = 365 * 24 * 3_600_000
    await world.start('pending', 't1')
    await world.start('waiting', 't2')
    await world.settle('waiting', 't2', suspendUntil(null))
    await world.enqueue('enqueued', newRun('delayed', { queue: 'media', due: { type: 'after', ms: 2 * year } }))
    world.clock.pass(year)
    assert.deepEqual(await sweep(world), { removed: 0, nextAt: null })
    assert.equal((await there(world, 'pending', 'waiting', 'enqueued', 'delayed')).length, 4)
    await world.settle('pending', 't1', SUCCEED)
    assert.equal((await world.run('pending')).status, 'SUCCESS')
  })

  test('a run that was requeued in time is kept, and counts from its next end', async (world) => {
    await end(world, 'a', 'error')
    world.clock.pass(1_000)
    await world.requeue('a')
    world.clock.pass(5_000)
    assert.deepEqual(await sweep(world), { removed: 0, nextAt: null })
    await world.claim(['t1'])
    await world.settle('a', 't1', FAIL)
    world.clock.pass(1_000)
    assert.equal((await sweep(world)).removed, 0)
    world.clock.pass(1)
    assert.equal((await sweep(world)).removed, 1)
  })

  test('key-values, queues and processes outlive the runs', async (world) => {
    await world.register('media')
    await world.enqueue(newRun('a', { queue: 'media', kv: [{ type: 'put', key: 'k', value: '1', hash: '#' }] }))
    await world.cancel('a')
    world.clock.pass(2_000)
    assert.equal((await sweep(world)).removed, 1)
    assert.equal(await world.value('k'), '1')
    assert.equal((await world.store.queues()).length, 1)
  })
}

function limits(test: Test): void {
  test('at most as many as asked for in one call; those that are left are due now', async (world) => {
    for (const id of numbered('run', 7)) await end(world, id)
    world.clock.pass(2_000)
    for (let left = 7; left > 0; ) {
      const { removed, nextAt } = await world.store.sweep({ definitions: CHARGE_FOR_A_SECOND, limit: 3 })
      assert.ok(removed >= 1 && removed <= 3)
      left -= removed
      assert.equal(nextAt !== null && nextAt <= world.clock.now(), left > 0)
      assert.equal((await world.store.list({ limit: 10 })).length, left)
    }
    assert.deepEqual(await sweep(world), { removed: 0, nextAt: null })
  })

  test('the limit is one for all definitions, queues and statuses', async (world) => {
    await world.register('media', { retention: ALL_FOR_A_SECOND })
    await end(world, 'a')
    await end(world, 'b', 'error')
    await end(world, 'c', 'dead', { definition: 'refund' })
    await world.enqueue(newRun('d', { queue: 'media', definition: 'refund' }))
    await world.cancel('d')
    world.clock.pass(2_000)
    const definitions = [...CHARGE_FOR_A_SECOND, { name: 'refund', retention: null }]
    for (let left = 3; left > 0; ) {
      const { removed } = await world.store.sweep({ definitions, limit: 2 })
      assert.ok(removed >= 1 && removed <= 2)
      left -= removed
    }
    assert.deepEqual(await sweep(world, definitions), { removed: 0, nextAt: null })
    assert.deepEqual(await there(world, 'a', 'b', 'c', 'd'), ['c'], 'the internal queue keeps for ever')
  })
}

function whole(test: Test): void {
  test('all that belongs to a run goes with it', async (world) => {
    await world.start('other', 'to')
    await world.checkpoint('other', 'to', [outcome(0)])
    await eventful(world, 'a')
    const other = await world.everythingOf('other')
    world.clock.pass(2_000)
    assert.equal((await sweep(world)).removed, 1)
    assert.deepEqual(await world.store.runs(['a']), [undefined])
    assert.deepEqual(await world.store.inputs(['a']), [undefined])
    assert.equal(await world.ending('a'), 'missing')
    assert.deepEqual(await world.history('a'), [])
    assert.deepEqual(await world.store.attempts('a'), [])
    assert.equal(await world.store.situation('a'), undefined)
    assert.deepEqual(
      (await world.store.list({ limit: 10 })).map(({ id }) => id),
      ['other'],
    )
    assert.equal((await world.store.queueStats('media')).enqueued, 0)
    assert.deepEqual(await world.cancel('a'), { type: 'notCancelled', status: null })
    assert.deepEqual(await world.requeue('a'), { type: 'notRequeued', status: null, holder: null })
    assert.deepEqual(await world.everythingOf('other'), other)
  })

  test('its id is free for another run, which finds nothing of it (D-09, J6)', async (world) => {
    await eventful(world, 'a')
    const { seq } = await world.run('a')
    world.clock.pass(2_000)
    await sweep(world)
    const again = newRun('a', { definition: 'refund', input: '"new"', inputHash: 'new', queue: 'media' })
    assert.deepEqual(await world.enqueue(again), accepted('a'))
    const row = await world.run('a')
    assertHas(row, { epoch: 0, deliveries: 0, attempt: 0, createdAt: world.clock.now(), definition: 'refund' })
    assert.ok(row.seq > seq, 'with a place of its own')
    assert.deepEqual(await world.store.inputs(['a']), ['"new"'])
    assert.equal(await world.ending('a'), undefined)
    assert.deepEqual(await world.history('a'), [])
    assert.deepEqual(await world.store.attempts('a'), [])
    assert.deepEqual(await world.waits('a'), [])
    await world.claim(['n1'], { sources: [from('media')], definitions: ['refund'] })
    assert.deepEqual(await world.wait('a', 'n1', { position: 3 }), { type: 'waiting' })
    await world.checkpoint('a', 'n1', [outcome(0, { failed: true, value: '"new"' })])
    await world.settle('a', 'n1', FAIL)
    await world.requeue('a')
    assert.deepEqual(await world.history('a'), [], 'also not what was put aside by its requeues')
    assert.equal((await world.store.attempts('a')).length, 2)
  })

  test('seq grows on, whatever was removed', async (world) => {
    await end(world, 'a')
    await end(world, 'b')
    const { seq } = await world.run('b')
    world.clock.pass(2_000)
    assert.equal((await sweep(world)).removed, 2)
    await world.enqueue('c', 'd')
    assert.ok((await world.run('c')).seq > seq)
    assert.deepEqual(await world.claimIds(['t1', 't2']), ['c', 'd'])
    assert.deepEqual(
      (await world.store.list({ limit: 10 })).map(({ id }) => id),
      ['d', 'c'],
    )
  })

  test('who waits for a run that is removed has been woken by its end, and later ones find it missing', async (world) => {
    await world.start('waiter', 'w')
    await world.start('a', 'a')
    await world.settle('waiter', 'w', suspendUntil(null, { position: 0, runId: 'a' }))
    await world.settle('a', 'a', SUCCEED)
    const woken = world.clock.now()
    world.clock.pass(2_000)
    assert.equal((await sweep(world)).removed, 1)
    assert.equal((await world.run('waiter')).dueAt, woken)
    assert.deepEqual(await world.claimIds(['w2']), ['waiter'])
    const answer = await world.settle('waiter', 'w2', suspendUntil(null, { position: 0, runId: 'a' }))
    assert.ok(answer.type === 'applied' && answer.dueAt === world.clock.now())
  })

  test('children of a run that is removed go on', async (world) => {
    await world.start('parent', 'p')
    await world.enqueue(newRun('child', { parentId: 'parent' }))
    await world.settle('parent', 'p', SUCCEED)
    world.clock.pass(2_000)
    await sweep(world)
    await world.enqueue('parent')
    assert.deepEqual(await world.claimIds(['t1', 't2']), ['child', 'parent'])
  })
}

/** A run with a past of every sort: two epochs, checkpoints put aside, a crash, a wait, an ending. */
async function eventful(world: World, id: string): Promise<void> {
  const media = { sources: [from('media')] }
  await world.enqueue(newRun(id, { queue: 'media', dedup: { id: 'd', policy: 'reject' }, timeoutMs: 10 * LEASE_MS }))
  await world.claim(['e1'], media)
  await world.checkpoint(id, 'e1', [outcome(0), outcome(1, { failed: true })])
  await world.settle(id, 'e1', FAIL)
  await world.requeue(id)
  await world.claim(['e2'], media)
  await world.reclaim(['worker-1'])
  await world.claim(['e3'], media)
  await world.wait(id, 'e3', { position: 3 })
  await world.signal('approval', '"was for the run before"')
  await world.settle(id, 'e3', FAIL, [outcome(1)])
}
