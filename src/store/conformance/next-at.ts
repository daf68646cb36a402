/**
 * `nextAt`: the next instant at which time alone may make something claimable. A dispatcher sleeps until then; so it
 * is never missed, never past, and never one at which something else than time is wanting.
 */
import assert from 'node:assert/strict'
import type { NewRun } from '../contract.ts'
import { newRun, SUCCEED, suspendUntil } from './makers.ts'
import { from, INTERNAL, lanes, runsOf } from './sources.ts'
import type { Test } from './world.ts'

const MEDIA = [from('media')]
const BOTH = ['charge', 'refund']

export function nextAt(test: Test): void {
  earliest(test)
  nothing(test)
  blocked(test)
}

function delayed(id: string, ms: number, run: Partial<NewRun> = {}): NewRun {
  return newRun(id, { queue: 'media', due: { type: 'after', ms }, ...run })
}

function earliest(test: Test): void {
  test('of suspended and delayed runs, the one that is due next', async (world) => {
    const now = world.clock.now()
    const sources = [INTERNAL, from('media')]
    assert.equal(await world.nextAt({ sources }), null)
    await world.start('waiting', 't1')
    assert.equal(await world.nextAt({ sources }), null, 'PENDING runs are not due by time')
    await world.settle('waiting', 't1', suspendUntil(now + 2_000))
    assert.equal(await world.nextAt({ sources }), now + 2_000)
    await world.enqueue(delayed('a', 3_000), delayed('b', 1_000))
    assert.equal(await world.nextAt({ sources }), now + 1_000)
    await world.cancel('b')
    assert.equal(await world.nextAt({ sources }), now + 2_000)
    await world.cancel('waiting')
    assert.equal(await world.nextAt({ sources }), now + 3_000)
    await world.cancel('a')
    assert.equal(await world.nextAt({ sources }), null)
  })

  test('after what was claimed, the one after it', async (world) => {
    const now = world.clock.now()
    await world.enqueue(delayed('a', 1_000), delayed('b', 2_000))
    world.clock.pass(1_000)
    const { runs, nextAt: next } = await world.claimOutcome(['t1', 't2'], { sources: MEDIA })
    assert.deepEqual([runs.map(({ run }) => run.id), next], [['a'], now + 2_000])
  })

  test('of the sources asked, and of the definitions named', async (world) => {
    const now = world.clock.now()
    await world.enqueue(
      delayed('a', 4_000),
      delayed('b', 3_000, { definition: 'refund' }),
      delayed('c', 2_000, { queue: 'mail' }),
      delayed('d', 1_000, { queue: null }),
    )
    assert.equal(await world.nextAt({ sources: MEDIA }), now + 4_000)
    assert.equal(await world.nextAt({ sources: MEDIA, definitions: BOTH }), now + 3_000)
    assert.equal(await world.nextAt({ sources: [from('media'), from('mail')] }), now + 2_000)
    assert.equal(await world.nextAt({ sources: [from('media'), from('mail'), INTERNAL] }), now + 1_000)
    assert.equal(await world.nextAt({ sources: [] }), null)
    assert.equal(await world.nextAt({ sources: MEDIA, definitions: [] }), null)
    assert.equal(await world.nextAt({ sources: MEDIA, definitions: ['unknown here'] }), null)
  })

  test('of every lane', async (world) => {
    await world.register('media', { partitioned: true })
    const now = world.clock.now()
    await world.enqueue(delayed('eu', 2_000, { partitionKey: 'eu' }), delayed('us', 1_000, { partitionKey: 'us' }))
    assert.equal(await world.nextAt({ sources: MEDIA }), now + 1_000)
    await world.cancel('us')
    assert.equal(await world.nextAt({ sources: MEDIA }), now + 2_000)
  })

  test('of versions that the claimant may take', async (world) => {
    const now = world.clock.now()
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.claim(['t1'], { sources: MEDIA, version: 'v1' })
    await world.settle('a', 't1', suspendUntil(now + 1_000))
    await world.claim(['t2'], { sources: MEDIA, version: 'v2' })
    await world.settle('b', 't2', suspendUntil(now + 2_000))
    assert.equal(await world.nextAt({ sources: MEDIA, version: 'v1' }), now + 1_000)
    assert.equal(await world.nextAt({ sources: MEDIA, version: 'v2' }), now + 2_000)
    assert.equal(await world.nextAt({ sources: MEDIA }), now + 1_000)
    assert.equal(await world.nextAt({ sources: MEDIA, version: 'v3' }), null)
  })
}

function nothing(test: Test): void {
  test('no run that waits for no time', async (world) => {
    await world.enqueue(...runsOf('media', ['signal', 'ended']))
    await world.claim(['t1', 't2'], { sources: MEDIA })
    await world.wait('signal', 't1')
    await world.settle('signal', 't1', suspendUntil(null))
    await world.settle('ended', 't2', SUCCEED)
    assert.equal(await world.nextAt({ sources: MEDIA }), null)
  })

  test('what is claimable already, but was not taken, is none: not for want of tokens', async (world) => {
    await world.enqueue(...runsOf('media', ['a', 'b']), delayed('c', 1_000))
    const now = world.clock.now()
    assert.deepEqual((await world.claimOutcome(['t1'], { sources: MEDIA })).nextAt, now + 1_000)
    world.clock.pass(1_000)
    assert.deepEqual((await world.claimOutcome(['t2'], { sources: MEDIA })).nextAt, null)
  })
}

function blocked(test: Test): void {
  test('nor for want of room in the process', async (world) => {
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.claim(['t1'], { sources: MEDIA })
    await world.settle('a', 't1', suspendUntil(world.clock.now()))
    assert.equal(await world.nextAt({ sources: [from('media', { room: 0 })] }), null)
  })

  test('nor for want of room in a lane', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(...runsOf('media', ['a', 'b'], { partitionKey: 'eu' }))
    await world.claim(['t1'], { sources: MEDIA })
    await world.settle('a', 't1', suspendUntil(world.clock.now()))
    assert.equal(await world.nextAt({ sources: [from('media', { lanes: lanes(1, { eu: 1 }) })] }), null)
  })

  test('nor while the queue is paused', async (world) => {
    await world.register('media')
    await world.enqueue(...runsOf('media', ['a']), delayed('b', 1_000))
    await world.configure('media', { paused: true })
    assert.equal(await world.nextAt({ sources: MEDIA }), null)
    world.clock.pass(2_000)
    assert.equal(await world.nextAt({ sources: MEDIA }), null)
  })

  test('nor at the global limit', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.claim(['t1'], { sources: MEDIA })
    assert.equal(await world.nextAt({ sources: MEDIA }), null)
  })

  test('nor when a resume waits for room at the global limit', async (world) => {
    await world.register('media', { globalConcurrency: 1, releaseWhileWaiting: true })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.claim(['t1'], { sources: MEDIA })
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 1_000))
    await world.claim(['t2'], { sources: MEDIA })
    world.clock.pass(5_000)
    assert.equal(await world.nextAt({ sources: MEDIA }), null)
  })
}
