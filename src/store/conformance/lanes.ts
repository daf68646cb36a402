/** Partitioned queues: every key is a lane of its own, and all lanes get their turn. */
import assert from 'node:assert/strict'
import { FAIL, LEASE_MS, newRun, numbered, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from, lanes as lanesOf, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'

const MEDIA = [from('media')]

export function lanes(test: Test): void {
  turns(test)
  local(test)
  keyless(test)
}

/** Runs `key 1`, `key 2`, ... of a lane. */
async function enqueue(world: World, key: string, ...numbers: readonly number[]): Promise<void> {
  await world.enqueue(
    ...runsOf(
      'media',
      numbers.map((n) => `${key} ${n}`),
      { partitionKey: key },
    ),
  )
}

function turns(test: Test): void {
  test('a run of each lane in turn, within one claim', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2, 3)
    await enqueue(world, 'us', 1)
    await enqueue(world, 'jp', 1, 2)
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4', '5', '6', '7'], { sources: MEDIA }), [
      ...['eu 1', 'us 1', 'jp 1'],
      ...['eu 2', 'jp 2'],
      'eu 3',
    ])
  })

  test('the turn goes on from claim to claim, and from store to store', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2, 3)
    await enqueue(world, 'us', 1)
    await enqueue(world, 'jp', 1, 2)
    const other = world.connect()
    await other.open()
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      ids.push(...(await world.claimIds([`a ${n}`], { sources: MEDIA })))
      ids.push(...(await world.claimIds([`b ${n}`], { sources: MEDIA }, other)))
    }
    assert.deepEqual(ids, ['eu 1', 'us 1', 'jp 1', 'eu 2', 'jp 2', 'eu 3'])
  })

  test('a busy lane starves nobody: who comes later is served within the next round', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'busy', ...Array.from({ length: 200 }, (_, n) => n))
    await world.claim(['1', '2', '3'], { sources: MEDIA })
    await enqueue(world, 'quiet', 1)
    await enqueue(world, 'calm', 1)
    const ids = await world.claimIds(['4', '5', '6'], { sources: MEDIA })
    assert.deepEqual(ids.toSorted(), ['busy 3', 'calm 1', 'quiet 1'])
  })

  test('a lane has no turn while it has nothing to claim, and is back with its next run', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1)
    await enqueue(world, 'us', 1, 2, 3)
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources: MEDIA }), ['eu 1', 'us 1', 'us 2'])
    await enqueue(world, 'eu', 2)
    assert.deepEqual((await world.claimIds(['4', '5'], { sources: MEDIA })).toSorted(), ['eu 2', 'us 3'])
    assert.deepEqual(await world.claim(['6'], { sources: MEDIA }), [])
  })

  test('within a lane the order of the queue holds, by priority where it is heeded', async (world) => {
    await world.register('media', { partitioned: true, priorityEnabled: true })
    for (const [id, priority] of [
      ['eu 1', 5],
      ['eu 2', 1],
      ['us 1', 9],
      ['eu 3', 1],
      ['us 2', 8],
    ] as const) {
      await world.enqueue(newRun(id, { queue: 'media', partitionKey: id.slice(0, 2), priority }))
    }
    const claimed = await world.claimIds(['1', '2', '3', '4', '5'], { sources: MEDIA })
    assert.deepEqual(
      claimed.filter((id) => id.startsWith('eu')),
      ['eu 2', 'eu 3', 'eu 1'],
    )
    assert.deepEqual(
      claimed.filter((id) => id.startsWith('us')),
      ['us 2', 'us 1'],
    )
    assert.deepEqual(claimed.slice(0, 2).toSorted(), ['eu 2', 'us 2'], 'the lanes take turns all the same')
  })

  test('who comes back to a lane keeps the place in it', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2, 3, 4)
    await world.claim(['t1', 't2', 't3'], { sources: MEDIA })
    await world.settle('eu 3', 't3', RELEASE)
    await world.settle('eu 1', 't1', FAIL)
    await world.requeue('eu 1')
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4'], { sources: MEDIA }), ['eu 1', 'eu 2', 'eu 3', 'eu 4'])
  })

  test('the turn is that of the lane, whatever the definitions of its runs', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1)
    const refund = { queue: 'media', definition: 'refund' } as const
    await world.enqueue(newRun('us refund', { ...refund, partitionKey: 'us' }))
    await world.enqueue(newRun('eu refund', { ...refund, partitionKey: 'eu' }))
    const definitions = ['charge', 'refund']
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources: MEDIA, definitions }), [
      ...['eu 1', 'us refund'],
      'eu refund',
    ])
  })

  test('other definitions in a lane hold up nobody', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(
      newRun('x', { queue: 'media', partitionKey: 'eu', definition: 'unknown here' }),
      newRun('y', { queue: 'media', partitionKey: 'us', definition: 'unknown here' }),
    )
    await enqueue(world, 'eu', 1)
    assert.deepEqual(await world.claimIds(['1', '2'], { sources: MEDIA }), ['eu 1'])
    const both = await world.claimIds(['3', '4'], { sources: MEDIA, definitions: ['unknown here'] })
    assert.deepEqual(both.toSorted(), ['x', 'y'])
  })

  test('a partitioned queue and others share one claim, one of each in turn', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2)
    await enqueue(world, 'us', 1)
    await world.enqueue(...runsOf('mail', ['n1', 'n2', 'n3']))
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4', '5', '6'], { sources: [from('mail'), from('media')] }), [
      ...['n1', 'eu 1'],
      ...['n2', 'us 1'],
      ...['n3', 'eu 2'],
    ])
  })
}

function local(test: Test): void {
  test('a process has at most so many of one lane, those it has already included (Q10)', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2, 3)
    await enqueue(world, 'us', 1, 2, 3)
    await enqueue(world, 'jp', 1)
    const sources = [from('media', { lanes: lanesOf(2, { eu: 1, jp: 2, elsewhere: 9 }) })]
    const ids = await world.claimIds(['1', '2', '3', '4', '5', '6', '7'], { sources })
    assert.deepEqual(ids, ['eu 1', 'us 1', 'us 2'])
  })

  test('limit 1 and two keys: two at once (Q21)', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2)
    await enqueue(world, 'us', 1, 2)
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources: [from('media', { lanes: lanesOf(1) })] }), [
      'eu 1',
      'us 1',
    ])
    const running = lanesOf(1, { eu: 1, us: 1 })
    assert.deepEqual(await world.claim(['4'], { sources: [from('media', { lanes: running })] }), [])
  })

  test('a resume needs room in its lane', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2)
    await enqueue(world, 'us', 1)
    await world.claim(['t1'], { sources: MEDIA })
    await world.settle('eu 1', 't1', suspendUntil(world.clock.now()))
    const full = from('media', { lanes: lanesOf(1, { eu: 1 }) })
    assert.deepEqual(await world.claimIds(['t2', 't3'], { sources: [full] }), ['us 1'])
    const free = from('media', { lanes: lanesOf(1, { us: 1 }) })
    assert.deepEqual(await world.claimIds(['t4', 't5'], { sources: [free] }), ['eu 1'], 'and takes that of a new run')
  })

  test('the room of the source bounds all its lanes together', async (world) => {
    await world.register('media', { partitioned: true })
    for (const key of ['eu', 'us', 'jp']) await enqueue(world, key, 1, 2)
    const sources = [from('media', { room: 2, lanes: lanesOf(5) })]
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources }), ['eu 1', 'us 1'])
  })

  test('a claim that is resent counts what it gives again within the lanes', async (world) => {
    await world.register('media', { partitioned: true })
    await enqueue(world, 'eu', 1, 2)
    const sources = [from('media', { lanes: lanesOf(1) })]
    const first = await world.claim(['t1', 't2'], { sources })
    assert.deepEqual(
      first.map(({ run }) => run.id),
      ['eu 1'],
    )
    assert.deepEqual(await world.claim(['t1', 't2'], { sources }), first)
  })

  test('a thousand lanes at their limit stand in no one’s way', async (world) => {
    await world.register('media', { partitioned: true })
    const keys = numbered('key', 1_000)
    await world.enqueue(...keys.flatMap((key) => runsOf('media', [`${key} a`, `${key} b`], { partitionKey: key })))
    const full = lanesOf(1, Object.fromEntries(keys.map((key) => [key, 1])))
    assert.deepEqual(await world.claim(['1', '2'], { sources: [from('media', { lanes: full })] }), [])
    await enqueue(world, 'free', 1, 2)
    assert.deepEqual(await world.claimIds(['3', '4'], { sources: [from('media', { lanes: full })] }), ['free 1'])
  })
}

function keyless(test: Test): void {
  test('a run without a key on a partitioned queue is stored and never dispatched (Q20)', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(...runsOf('media', ['keyless']))
    await world.enqueue(newRun('later', { queue: 'media', due: { type: 'after', ms: 1_000 } }))
    await enqueue(world, 'eu', 1)
    assert.deepEqual(await world.claimIds(['1', '2'], { sources: MEDIA }), ['eu 1'])
    world.clock.pass(1_000)
    const all = [from('media', { lanes: lanesOf(5) })]
    assert.deepEqual(await world.claimOutcome(['3'], { sources: all }), { runs: [], nextAt: null })
    await world.cancel('keyless')
    await world.requeue('keyless')
    assert.deepEqual(await world.claim(['4'], { sources: MEDIA }), [])
  })

  test('one that was running when the queue was partitioned goes on, also once it was handed back', async (world) => {
    await world.enqueue(...runsOf('media', ['ends', 'returns']))
    await world.claim(['t1', 't2'], { sources: MEDIA })
    await world.register('media', { partitioned: true })
    await world.settle('ends', 't1', SUCCEED)
    await world.settle('returns', 't2', RELEASE)
    assert.deepEqual(
      (await world.store.runs(['ends', 'returns'])).map((run) => run?.status),
      ['SUCCESS', 'ENQUEUED'],
    )
    assert.deepEqual(await world.claimIds(['t3', 't4'], { sources: MEDIA }), ['returns'])
  })
}
