/** The place of a run in its queue: lane and rank, derived from what the queue is now, not from what it was. */
import assert from 'node:assert/strict'
import type { NewRun } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import { accepted, applied, newRun, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const MEDIA = [from('media')]

export function place(test: Test): void {
  atStart(test)
  caveats(test)
  later(test)
  effects(test)
}

function queued(id: string, run: Partial<NewRun> = {}): NewRun {
  return newRun(id, { queue: 'media', priority: 5, partitionKey: 'eu', ...run })
}

function atStart(test: Test): void {
  for (const [partitioned, priorityEnabled, lane, rank] of [
    [false, false, '', 0],
    [false, true, '', 5],
    [true, false, 'eu', 0],
    [true, true, 'eu', 5],
  ] as const) {
    const knobs = { partitioned, priorityEnabled }
    test(`on a queue with ${JSON.stringify(knobs)} a run has lane '${lane}' and rank ${rank}`, async (world) => {
      await world.register('media', knobs)
      await world.enqueue(queued('a'), queued('keyless', { partitionKey: null, priority: 0 }))
      assertHas(await world.run('a'), { priority: 5, partitionKey: 'eu', lane, rank })
      assertHas(await world.run('keyless'), { priority: 0, partitionKey: null, lane: partitioned ? null : '', rank: 0 })
    })
  }

  test('on a queue that nobody registered, and on the internal one, a run has neither', async (world) => {
    await world.register('other', { partitioned: true, priorityEnabled: true })
    await world.enqueue(queued('a'), newRun('b', { priority: 5, partitionKey: 'eu' }))
    for (const id of ['a', 'b']) assertHas(await world.run(id), { priority: 5, partitionKey: 'eu', lane: '', rank: 0 })
  })

  test('an empty key is a key', async (world) => {
    await world.register('media', { partitioned: true })
    assert.deepEqual(await world.enqueue(queued('a', { partitionKey: '', priority: 0 })), accepted('a'))
    assert.equal((await world.run('a')).lane, '')
    assert.deepEqual(await world.claimIds(['t1'], { sources: MEDIA }), ['a'])
  })
}

function caveats(test: Test): void {
  test('a start says what will not happen as its caller may think (Q20)', async (world) => {
    await world.register('partitioned', { partitioned: true, priorityEnabled: true })
    await world.register('plain')
    await world.register('ordered', { priorityEnabled: true })
    const at = (queue: string | null, run: Partial<NewRun> = {}): NewRun =>
      newRun(`${queue} ${JSON.stringify(run)}`, { queue, ...run })
    for (const [run, caveat] of [
      [at('partitioned', { partitionKey: 'eu', priority: 1 }), null],
      [at('partitioned'), 'keyless'],
      [at('partitioned', { priority: 1 }), 'keyless'],
      [at('plain'), null],
      [at('plain', { priority: 1 }), 'priorityIgnored'],
      [at('plain', { priority: -1 }), 'priorityIgnored'],
      [at('plain', { partitionKey: 'eu' }), 'partitionKeyIgnored'],
      [at('ordered', { partitionKey: 'eu', priority: 1 }), 'partitionKeyIgnored'],
      [at('ordered', { priority: 1 }), null],
      [at('ordered'), null],
      [at('unregistered', { partitionKey: 'eu', priority: 1 }), null],
      [at(null, { priority: 1 }), 'priorityIgnored'],
      [at(null), null],
      [at('unregistered'), null],
    ] as const) {
      assert.deepEqual(await world.enqueue(run), accepted({ id: run.id, caveat }), run.id)
    }
  })

  test('each run of a command has its own, also in a resend', async (world) => {
    await world.register('media', { partitioned: true })
    const runs = [queued('a', { priority: 0 }), queued('b', { priority: 0, partitionKey: null })]
    const start = { type: 'enqueue', commandId: 'c1', runs } as const
    const answer = accepted('a', { id: 'b', caveat: 'keyless' })
    assert.deepEqual(await world.commit(start), answer)
    assert.deepEqual(await world.commit(start), answer)
  })
}

/** Runs in every status that is not an end, and in one that is. */
async function inEveryStatus(world: World): Promise<void> {
  await world.enqueue(queued('waiting'), queued('ended'))
  await world.claim(['t1', 't2'], { sources: MEDIA })
  await world.settle('waiting', 't1', suspendUntil(world.clock.now() + 9_000))
  await world.settle('ended', 't2', SUCCEED)
  await world.enqueue(queued('pending'))
  await world.claim(['t3'], { sources: MEDIA })
  await world.enqueue(queued('enqueued'), queued('delayed', { due: { type: 'after', ms: 9_000 } }))
  await world.enqueue(newRun('elsewhere', { queue: 'other', priority: 5, partitionKey: 'eu' }))
}
const ALIVE = ['waiting', 'pending', 'enqueued', 'delayed']

async function assertPlaces(world: World, ids: readonly string[], expected: Pick<RunRecord, 'lane' | 'rank'>) {
  for (const id of ids) assertHas(await world.run(id), expected)
}

function later(test: Test): void {
  test('registering a queue derives the place of every run in it that has not ended', async (world) => {
    await inEveryStatus(world)
    const statuses = await Promise.all(ALIVE.map(async (id) => (await world.run(id)).status))
    assert.deepEqual(statuses, ['WAITING', 'PENDING', 'ENQUEUED', 'DELAYED'])
    await world.register('media', { partitioned: true, priorityEnabled: true })
    await assertPlaces(world, ALIVE, { lane: 'eu', rank: 5 })
    await assertPlaces(world, ['elsewhere'], { lane: '', rank: 0 })
    await world.register('media', { configVersion: 1 })
    await assertPlaces(world, ALIVE, { lane: '', rank: 0 })
  })

  test('so does a change, each knob for itself', async (world) => {
    await world.register('media')
    await inEveryStatus(world)
    await world.configure('media', { partitioned: true })
    await assertPlaces(world, ALIVE, { lane: 'eu', rank: 0 })
    await world.configure('media', { priorityEnabled: true })
    await assertPlaces(world, ALIVE, { lane: 'eu', rank: 5 })
    await world.configure('media', { partitioned: false })
    await assertPlaces(world, ALIVE, { lane: '', rank: 5 })
    await world.configure('media', { priorityEnabled: false, globalConcurrency: 100 })
    await assertPlaces(world, ALIVE, { lane: '', rank: 0 })
    await assertPlaces(world, ['elsewhere'], { lane: '', rank: 0 })
  })

  test('a run without a key that has begun goes on when its queue becomes partitioned; others are not begun', async (world) => {
    await world.register('media')
    const keyless = (id: string) => queued(id, { partitionKey: null, priority: 0 })
    await world.enqueue(keyless('asleep'), keyless('pending'), keyless('crashed'))
    await world.claim(['t1', 't2', 't3'], { sources: MEDIA })
    await world.settle('asleep', 't1', suspendUntil(world.clock.now() + 1_000))
    await world.enqueue(keyless('fresh'))
    await world.configure('media', { partitioned: true, globalConcurrency: 3 })
    await assertPlaces(world, ['asleep', 'pending', 'crashed'], { lane: '', rank: 0 })
    await assertPlaces(world, ['fresh'], { lane: null, rank: 0 })
    world.clock.pass(1_000)
    assert.deepEqual(await world.claimIds(['t4', 't5', 't6'], { sources: MEDIA }), ['asleep'])
    await world.settle('crashed', 't3', RELEASE)
    assert.deepEqual(await world.claimIds(['t7', 't8'], { sources: MEDIA }), ['crashed'])
    await world.settle('pending', 't2', suspendUntil(world.clock.now() + 1_000))
    await world.configure('media', { partitioned: false })
    assert.deepEqual(await world.claimIds(['t9'], { sources: MEDIA }), [], 'the limit of three')
    await world.settle('asleep', 't4', SUCCEED)
    assert.deepEqual(await world.claimIds(['t10'], { sources: MEDIA }), ['fresh'])
  })

  test('a straggler that registers an older queue moves no run', async (world) => {
    await world.register('media', { partitioned: true, configVersion: 1 })
    await inEveryStatus(world)
    await world.register('media', { configVersion: 0 })
    await assertPlaces(world, ALIVE, { lane: 'eu', rank: 0 })
  })

  test('a run that is requeued has the place that its queue gives it now', async (world) => {
    await world.register('media')
    await world.enqueue(queued('a'), queued('keyless', { partitionKey: null }))
    for (const id of ['a', 'keyless']) await world.cancel(id)
    await world.configure('media', { partitioned: true, priorityEnabled: true })
    for (const id of ['a', 'keyless']) assert.deepEqual(await world.requeue(id), { type: 'requeued' })
    assertHas(await world.run('a'), { lane: 'eu', rank: 5 })
    assertHas(await world.run('keyless'), { lane: null })
    assert.deepEqual(await world.claimIds(['t1', 't2'], { sources: MEDIA }), ['a'])
  })

  test('a claim outlives the change, and its row changes in nothing else', async (world) => {
    await world.enqueue(queued('a'))
    await world.claim(['t1'], { sources: MEDIA })
    const before = await world.run('a')
    world.clock.pass(100)
    await world.register('media', { partitioned: true, priorityEnabled: true })
    assert.deepEqual(await world.run('a'), { ...before, lane: 'eu', rank: 5 })
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied())
  })
}

function effects(test: Test): void {
  test('the order of those that wait follows, from the next claim on', async (world) => {
    await world.register('media')
    await world.enqueue(queued('last', { priority: 9 }), queued('first', { priority: -9 }), queued('middle'))
    await world.configure('media', { priorityEnabled: true })
    assert.deepEqual(await world.claimIds(['t1', 't2'], { sources: MEDIA }), ['first', 'middle'])
    await world.configure('media', { priorityEnabled: false })
    await world.enqueue(queued('urgent', { priority: -99 }))
    assert.deepEqual(await world.claimIds(['t3', 't4'], { sources: MEDIA }), ['last', 'urgent'])
  })

  test('the limit of a lane counts what runs there already', async (world) => {
    await world.register('media', { globalConcurrency: 2 })
    await world.enqueue(...runsOf('media', ['eu 1', 'eu 2'], { partitionKey: 'eu' }))
    await world.claim(['t1'], { sources: MEDIA })
    await world.enqueue(...runsOf('media', ['us 1', 'us 2'], { partitionKey: 'us' }))
    await world.configure('media', { partitioned: true, globalConcurrency: 1 })
    assert.deepEqual(await world.claimIds(['t2', 't3', 't4'], { sources: MEDIA }), ['us 1'])
    await world.settle('eu 1', 't1', SUCCEED)
    assert.deepEqual(await world.claimIds(['t5', 't6'], { sources: MEDIA }), ['eu 2'])
  })

  test('the limit of the queue counts again when it is partitioned no more', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 1 })
    await world.enqueue(...['eu', 'us', 'jp'].map((key) => queued(key, { partitionKey: key, priority: 0 })))
    assert.deepEqual(await world.claimIds(['t1', 't2'], { sources: MEDIA }), ['eu', 'us'])
    await world.configure('media', { partitioned: false, globalConcurrency: 2 })
    assert.deepEqual(await world.claim(['t3'], { sources: MEDIA }), [])
    await world.settle('us', 't2', SUCCEED)
    assert.deepEqual(await world.claimIds(['t4'], { sources: MEDIA }), ['jp'])
  })

  test('runs without a key are dispatched as soon as none is needed, and no more once one is', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    assert.deepEqual(await world.claim(['t1'], { sources: MEDIA }), [])
    await world.configure('media', { partitioned: false })
    assert.deepEqual(await world.claimIds(['t2'], { sources: MEDIA }), ['a'])
    await world.configure('media', { partitioned: true })
    assert.deepEqual(await world.claim(['t3'], { sources: MEDIA }), [])
  })
}
