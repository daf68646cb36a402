/** Situations and statistics: what decides whether a run may be claimed, and what a queue does now. */
import assert from 'node:assert/strict'
import type { QueueStats } from '../contract.ts'
import { newRun, numbered, SUCCEED, suspendUntil } from './makers.ts'
import { from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const MEDIA = { sources: [from('media')] }
const NOTHING: QueueStats = { enqueued: 0, delayed: 0, pending: 0, waiting: 0, keyless: 0 }

export function situation(test: Test): void {
  basics(test)
  limits(test)
  rates(test)
  ahead(test)
  statistics(test)
}

async function situationOf(world: World, id: string) {
  const found = await world.store.situation(id)
  assert.ok(found !== undefined)
  assert.deepEqual(found.run, await world.run(id))
  return found
}

function basics(test: Test): void {
  test('of an unknown run there is none', async (world) => {
    assert.equal(await world.store.situation('nowhere'), undefined)
  })

  test('the run, its queue as it is now, and its waits', async (world) => {
    const media = await world.register('media', { globalConcurrency: 2, priorityEnabled: true })
    await world.enqueue(...runsOf('media', ['a']), ...runsOf('unregistered', ['b']), 'c')
    assert.deepEqual((await situationOf(world, 'a')).queue, media)
    assert.equal((await situationOf(world, 'b')).queue, null)
    assert.equal((await situationOf(world, 'c')).queue, null)
    await world.configure('media', { paused: true })
    assert.equal((await situationOf(world, 'a')).queue?.paused, true)
    assert.deepEqual((await situationOf(world, 'a')).waits, [])
  })

  test('a queue without limits has no holders and no rate', async (world) => {
    await world.register('media')
    await world.enqueue(...runsOf('media', ['a', 'b']), ...runsOf('unregistered', ['c', 'd']))
    await world.claim(['t1'], MEDIA)
    await world.claim(['t2'], { sources: [from('unregistered')] })
    for (const id of ['b', 'd']) {
      assertHas(await situationOf(world, id), { active: 0, holders: [], rateOpensAt: null })
    }
  })
}

function limits(test: Test): void {
  test('those that count against the global limit, oldest first', async (world) => {
    await world.register('media', { globalConcurrency: 3, priorityEnabled: true })
    await world.enqueue(
      newRun('second', { queue: 'media', priority: 5 }),
      newRun('first', { queue: 'media', priority: 1 }),
      newRun('third', { queue: 'media', priority: 9 }),
    )
    await world.claim(['t1', 't2'], MEDIA)
    await world.settle('second', 't2', suspendUntil(null))
    await world.enqueue(...runsOf('media', ['next'], { priority: 20 }))
    assertHas(await situationOf(world, 'next'), { active: 2, holders: ['second', 'first'] })
    await world.configure('media', { releaseWhileWaiting: true })
    assertHas(await situationOf(world, 'next'), { active: 1, holders: ['first'] })
    await world.settle('first', 't1', SUCCEED)
    assertHas(await situationOf(world, 'next'), { active: 0, holders: [] })
  })

  test('of its lane only', async (world) => {
    await world.register('media', { globalConcurrency: 1, partitioned: true })
    await world.enqueue(
      ...runsOf('media', ['eu 1', 'eu 2'], { partitionKey: 'eu' }),
      ...runsOf('media', ['us 1'], { partitionKey: 'us' }),
    )
    await world.claim(['t1'], MEDIA)
    assertHas(await situationOf(world, 'eu 2'), { active: 1, holders: ['eu 1'] })
    assertHas(await situationOf(world, 'us 1'), { active: 0, holders: [] })
  })

  test('a run without a key has no lane to be in', async (world) => {
    await world.register('media', { globalConcurrency: 1, partitioned: true, rateLimit: { limit: 1, periodMs: 1_000 } })
    await world.enqueue(...runsOf('media', ['keyless']), ...runsOf('media', ['eu'], { partitionKey: 'eu' }))
    await world.claim(['t1'], MEDIA)
    assertHas(await situationOf(world, 'keyless'), { active: 0, holders: [], rateOpensAt: null, ahead: 0 })
  })

  test('many holders: all are counted, some are named', async (world) => {
    await world.register('media', { globalConcurrency: 200 })
    const ids = numbered('run', 150)
    await world.enqueue(...runsOf('media', ids))
    await world.claim(ids, MEDIA)
    await world.enqueue(...runsOf('media', ['next']))
    const { active, holders } = await situationOf(world, 'next')
    assert.equal(active, 150)
    assert.ok(holders.length >= 1)
    assert.deepEqual(holders, ids.slice(0, holders.length))
  })
}

function rates(test: Test): void {
  test('when the rate limit of its lane lets the next start, if not now', async (world) => {
    await world.register('media', { rateLimit: { limit: 2, periodMs: 1_000 }, partitioned: true })
    await world.enqueue(
      ...runsOf('media', ['eu 1', 'eu 2', 'eu 3'], { partitionKey: 'eu' }),
      ...runsOf('media', ['us 1'], { partitionKey: 'us' }),
    )
    const now = world.clock.now()
    await world.claim(['t1'], { sources: [from('media', { room: 1 })] })
    assert.equal((await situationOf(world, 'eu 3')).rateOpensAt, null)
    world.clock.pass(300)
    await world.claim(['t2', 't3'], MEDIA)
    assert.equal((await situationOf(world, 'eu 3')).rateOpensAt, now + 1_000)
    world.clock.pass(700)
    assert.equal((await situationOf(world, 'eu 3')).rateOpensAt, null)
  })

  test('a look changes nothing, also when the clock was set back', async (world) => {
    await world.register('media', { rateLimit: { limit: 1, periodMs: 1_000 } })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.claim(['t1'], MEDIA)
    world.clock.pass(-60_000)
    assert.equal((await situationOf(world, 'b')).rateOpensAt, world.clock.now() + 1_000)
    world.clock.pass(1_000)
    assert.equal((await situationOf(world, 'b')).run.status, 'ENQUEUED')
    assert.deepEqual(await world.store.queueStats('media'), { ...NOTHING, enqueued: 1, pending: 1 })
  })
}

function ahead(test: Test): void {
  test('those of its lane that go first, by priority and place', async (world) => {
    await world.register('media', { priorityEnabled: true })
    const ranked = { a: 5, b: 1, c: 5, d: 9, e: 1 }
    await world.enqueue(...Object.entries(ranked).map(([id, priority]) => newRun(id, { queue: 'media', priority })))
    for (const [id, count] of Object.entries({ b: 0, e: 1, a: 2, c: 3, d: 4 })) {
      assert.equal((await situationOf(world, id)).ahead, count, id)
    }
    await world.configure('media', { priorityEnabled: false })
    for (const [n, id] of Object.keys(ranked).entries()) assert.equal((await situationOf(world, id)).ahead, n, id)
  })

  test('not those of other lanes and queues, nor those that have begun or ended', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(
      ...runsOf('media', ['us 1'], { partitionKey: 'us' }),
      ...runsOf('media', ['eu 1', 'eu 2', 'eu 3', 'eu 4'], { partitionKey: 'eu' }),
      ...runsOf('mail', ['n']),
    )
    assert.equal((await situationOf(world, 'eu 4')).ahead, 3)
    await world.cancel('eu 1')
    await world.claim(['t1', 't2'], MEDIA)
    assertHas(await world.run('eu 2'), { status: 'PENDING' })
    assert.equal((await situationOf(world, 'eu 4')).ahead, 1)
  })

  test('counted up to a thousand', async (world) => {
    await world.enqueue(...runsOf('media', numbered('run', 1_005)))
    assert.equal((await situationOf(world, 'run 999')).ahead, 999)
    assert.equal((await situationOf(world, 'run 1004')).ahead, 1_000)
  })
}

function statistics(test: Test): void {
  test('a queue counts its runs by what they do, and not those that have ended', async (world) => {
    assert.deepEqual(await world.store.queueStats('media'), NOTHING)
    await world.enqueue(
      ...runsOf('media', ['ended', 'waiting', 'pending', 'e1', 'e2', 'e3']),
      ...runsOf('media', ['d1', 'd2'], { due: { type: 'after', ms: 1_000 } }),
      ...runsOf('mail', ['n']),
      'internal',
    )
    await world.claim(['t1', 't2', 't3'], MEDIA)
    await world.settle('ended', 't1', SUCCEED)
    await world.settle('waiting', 't2', suspendUntil(null))
    const expected = { ...NOTHING, enqueued: 3, delayed: 2, pending: 1, waiting: 1 }
    assert.deepEqual(await world.store.queueStats('media'), expected)
    assert.deepEqual(await world.store.queueStats('mail'), { ...NOTHING, enqueued: 1 })
    assert.deepEqual(await world.store.queueStats('Media'), NOTHING)
    for (const id of ['d1', 'e1', 'waiting']) await world.cancel(id)
    await world.settle('pending', 't3', { type: 'release' })
    assert.deepEqual(await world.store.queueStats('media'), { ...NOTHING, enqueued: 3, delayed: 1 })
  })

  test('those without a key are counted too, apart (Q20)', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(...runsOf('media', ['k1', 'k2']), ...runsOf('media', ['eu'], { partitionKey: 'eu' }))
    assert.deepEqual(await world.store.queueStats('media'), { ...NOTHING, enqueued: 3, keyless: 2 })
    await world.cancel('k1')
    assert.deepEqual(await world.store.queueStats('media'), { ...NOTHING, enqueued: 2, keyless: 1 })
    await world.configure('media', { partitioned: false })
    assert.deepEqual(await world.store.queueStats('media'), { ...NOTHING, enqueued: 2 })
  })
}
