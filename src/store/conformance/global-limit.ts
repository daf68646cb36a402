/** The global limit: how many runs of a lane hold a turn at a time, over all processes, versions and crashes (P6). */
import assert from 'node:assert/strict'
import { CLAIM_LOST, FAIL, LEASE_MS, newRun, numbered, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'

const MEDIA = [from('media')]
const TOKENS = ['1', '2', '3', '4', '5', '6', '7', '8', '9']

export function globalLimit(test: Test): void {
  counting(test)
  freeing(test)
  waiting(test)
  releasing(test)
  partitions(test)
  changes(test)
}

function claimIds(world: World, version: string | null = null): Promise<readonly string[]> {
  return world.claimUpTo(10, { sources: MEDIA, version })
}

async function tokenOf(world: World, id: string): Promise<string> {
  return (await world.run(id)).token ?? ''
}

function counting(test: Test): void {
  test('no more than the limit are PENDING, in one claim and over several', async (world) => {
    await world.register('media', { globalConcurrency: 3 })
    await world.enqueue(...runsOf('media', TOKENS))
    assert.deepEqual(await world.claimIds(['a', 'b'], { sources: MEDIA }), ['1', '2'])
    assert.deepEqual(await claimIds(world), ['3'])
    assert.deepEqual(await claimIds(world), [])
  })

  test('runs that wait, are delayed or have ended hold no turn', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['ended', 'delayed'], { due: { type: 'after', ms: 10 } }))
    await world.cancel('ended')
    await world.enqueue(...runsOf('media', ['a', 'b']))
    assert.deepEqual(await claimIds(world), ['a'])
  })

  test('those of other queues and of the internal one count there', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.register('mail', { globalConcurrency: 2 })
    await world.start('direct', 't0')
    await world.enqueue(...runsOf('media', ['m1', 'm2']), ...runsOf('mail', ['n1', 'n2', 'n3']), 'i1', 'i2')
    const sources = [from('media'), from('mail'), { ...from(''), queue: null }]
    assert.deepEqual((await world.claimIds(TOKENS, { sources })).toSorted(), ['i1', 'i2', 'm1', 'n1', 'n2'])
  })

  test('runs of every version count, and of definitions that the claimant does not know (Q11, Q14b)', async (world) => {
    await world.register('media', { globalConcurrency: 2 })
    await world.enqueue(...runsOf('media', ['a']), newRun('b', { queue: 'media', definition: 'refund' }))
    await world.enqueue(...runsOf('media', ['c', 'd']))
    assert.deepEqual(await world.claimIds(['t1'], { sources: MEDIA, version: 'v1' }), ['a'])
    assert.deepEqual(await world.claimIds(['t2'], { sources: MEDIA, definitions: ['refund'], version: 'v2' }), ['b'])
    for (const version of ['v1', 'v2', null]) assert.deepEqual(await claimIds(world, version), [], `${version}`)
    await world.settle('b', 't2', SUCCEED)
    assert.deepEqual(await claimIds(world, 'v2'), ['c'])
  })

  test('runs that were claimed before anyone registered the queue count as well', async (world) => {
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']))
    await world.claim(['t1', 't2'], { sources: MEDIA })
    await world.register('media', { globalConcurrency: 2 })
    assert.deepEqual(await claimIds(world), [])
    await world.settle('a', 't1', SUCCEED)
    assert.deepEqual(await claimIds(world), ['c'])
  })

  test('more urgent runs wait for their turn as well', async (world) => {
    await world.register('media', { globalConcurrency: 2, priorityEnabled: true })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c'], { priority: 5 }))
    assert.deepEqual(await claimIds(world), ['a', 'b'])
    await world.enqueue(...runsOf('media', ['urgent'], { priority: -5 }))
    assert.deepEqual(await claimIds(world), [])
    await world.finish('a')
    assert.deepEqual(await claimIds(world), ['urgent'])
  })

  test('a claim that is resent takes no second turn', async (world) => {
    await world.register('media', { globalConcurrency: 2 })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']))
    const first = await world.claim(['t1', 't2', 't3'], { sources: MEDIA })
    assert.equal(first.length, 2)
    assert.deepEqual(await world.claim(['t1', 't2', 't3'], { sources: MEDIA }), first)
  })
}

function freeing(test: Test): void {
  test('a turn is free with the end, a hand-back or the reclaim of its run', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c', 'd']))
    for (const settlement of [SUCCEED, FAIL]) {
      const [id] = await claimIds(world)
      assert.ok(id !== undefined)
      assert.deepEqual(await claimIds(world), [])
      await world.finish(id, settlement)
    }
    assert.deepEqual(await claimIds(world), ['c'])
    await world.finish('c', RELEASE)
    assert.deepEqual(await claimIds(world), ['c'], 'at its place, so it is next again')
    world.clock.pass(LEASE_MS)
    assert.deepEqual(await claimIds(world), [], 'a lease that has ended holds the turn until it is reclaimed (P5)')
    await world.reclaim()
    assert.deepEqual(await claimIds(world), ['c'])
  })

  test('a run that was asked to cancel holds its turn until it ends', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await claimIds(world)
    await world.cancel('a')
    assert.deepEqual(await claimIds(world), [])
    await world.finish('a')
    assert.deepEqual(await claimIds(world), ['b'])
  })

  test('a zombie frees no turn a second time, ten times in a row (C-06, D-23)', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', numbered('run', 12)))
    for (let n = 0; n < 10; n++) {
      const [id] = await claimIds(world)
      assert.ok(id !== undefined)
      const zombie = await tokenOf(world, id)
      world.clock.pass(LEASE_MS)
      await world.reclaim()
      assert.deepEqual(await claimIds(world), [id])
      for (const settlement of [SUCCEED, FAIL, RELEASE, suspendUntil(0)]) {
        assert.deepEqual(await world.settle(id, zombie, settlement), CLAIM_LOST)
      }
      assert.deepEqual(await claimIds(world), [], `round ${n}`)
      const live = await tokenOf(world, id)
      await world.settle(id, live, SUCCEED)
      await world.settle(id, live, SUCCEED)
    }
    assert.deepEqual(await claimIds(world), ['run 10'])
    assert.deepEqual(await claimIds(world), [])
  })

  test('a cancellation or an end that is resent frees nothing twice', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']))
    await claimIds(world)
    await world.finish('a', suspendUntil(null))
    await world.cancel('a', 'c1')
    assert.deepEqual(await claimIds(world), ['b'])
    await world.cancel('a', 'c1')
    assert.deepEqual(await claimIds(world), [])
  })
}

function waiting(test: Test): void {
  test('a suspended run holds its turn: one at a time means one at a time', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await claimIds(world)
    await world.finish('a', suspendUntil(world.clock.now() + 1_000))
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1_000)
    assert.deepEqual(await claimIds(world), ['a'], 'and resumes in it')
    assert.deepEqual(await claimIds(world), [])
    await world.finish('a')
    assert.deepEqual(await claimIds(world), ['b'])
  })

  test('resumes need no turn of their own, however far the limit was lowered', async (world) => {
    await world.register('media', { globalConcurrency: 3 })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c', 'd']))
    await claimIds(world)
    for (const id of ['a', 'b', 'c']) await world.finish(id, suspendUntil(world.clock.now()))
    await world.configure('media', { globalConcurrency: 1 })
    assert.deepEqual(await claimIds(world), ['a', 'b', 'c'])
    for (const id of ['a', 'b']) await world.finish(id)
    assert.deepEqual(await claimIds(world), [])
    await world.finish('c')
    assert.deepEqual(await claimIds(world), ['d'])
  })

  test('the end of a suspended run frees its turn', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await claimIds(world)
    await world.finish('a', suspendUntil(null))
    assert.deepEqual(await claimIds(world), [])
    await world.cancel('a')
    assert.deepEqual(await claimIds(world), ['b'])
  })
}

function releasing(test: Test): void {
  test('with releaseWhileWaiting a suspended run gives its turn away', async (world) => {
    await world.register('media', { globalConcurrency: 1, releaseWhileWaiting: true })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']))
    assert.deepEqual(await claimIds(world), ['a'])
    await world.finish('a', suspendUntil(world.clock.now() + 1_000))
    assert.deepEqual(await claimIds(world), ['b'])
    assert.deepEqual(await claimIds(world), [])
  })

  test('and resumes when there is room again, before new runs', async (world) => {
    await world.register('media', { globalConcurrency: 1, releaseWhileWaiting: true })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']))
    await claimIds(world)
    await world.finish('a', suspendUntil(world.clock.now() + 1_000))
    await claimIds(world)
    world.clock.pass(5_000)
    assert.deepEqual(await claimIds(world), [], 'b has the turn')
    await world.finish('b')
    assert.deepEqual(await claimIds(world), ['a'])
    assert.deepEqual(await claimIds(world), [])
    await world.finish('a')
    assert.deepEqual(await claimIds(world), ['c'])
  })

  test('resumes and new runs together stay within the limit', async (world) => {
    await world.register('media', { globalConcurrency: 3, releaseWhileWaiting: true })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await claimIds(world)
    for (const id of ['a', 'b']) await world.finish(id, suspendUntil(world.clock.now()))
    await world.enqueue(...runsOf('media', ['c', 'd', 'e']))
    assert.deepEqual(await claimIds(world), ['a', 'b', 'c'])
    assert.deepEqual(await claimIds(world), [])
  })

  test('more resumes than room: the earliest due first, the others later', async (world) => {
    await world.register('media', { releaseWhileWaiting: true })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']))
    await claimIds(world)
    const now = world.clock.now()
    for (const [id, wakeAt] of [
      ['a', now + 3],
      ['b', now + 1],
      ['c', now + 2],
    ] as const) {
      await world.finish(id, suspendUntil(wakeAt))
    }
    await world.configure('media', { globalConcurrency: 2 })
    world.clock.pass(3)
    assert.deepEqual(await claimIds(world), ['b', 'c'])
    await world.finish('b')
    assert.deepEqual(await claimIds(world), ['a'])
  })

  test('releaseWhileWaiting that is turned off counts those that wait already', async (world) => {
    await world.register('media', { globalConcurrency: 1, releaseWhileWaiting: true })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await claimIds(world)
    await world.finish('a', suspendUntil(null))
    await world.configure('media', { releaseWhileWaiting: false })
    assert.deepEqual(await claimIds(world), [])
    await world.configure('media', { releaseWhileWaiting: true })
    assert.deepEqual(await claimIds(world), ['b'])
  })
}

function partitions(test: Test): void {
  async function fill(world: World, ...keys: readonly string[]): Promise<void> {
    const numbered = keys.flatMap((key) => [1, 2, 3].map((n) => ({ id: `${key} ${n}`, key })))
    await world.enqueue(...numbered.map(({ id, key }) => newRun(id, { queue: 'media', partitionKey: key })))
  }

  test('each lane has the limit to itself', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 2 })
    await fill(world, 'eu', 'us')
    assert.deepEqual(await claimIds(world), ['eu 1', 'us 1', 'eu 2', 'us 2'])
    assert.deepEqual(await claimIds(world), [])
    await world.finish('us 1')
    assert.deepEqual(await claimIds(world), ['us 3'])
  })

  test('a full lane stands in no other’s way, whenever it fills and frees (C-02)', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 1 })
    await fill(world, 'eu')
    assert.deepEqual(await claimIds(world), ['eu 1'])
    await fill(world, 'us', 'jp')
    assert.deepEqual(await claimIds(world), ['us 1', 'jp 1'])
    for (const id of ['eu 1', 'jp 1']) await world.finish(id)
    assert.deepEqual((await claimIds(world)).toSorted(), ['eu 2', 'jp 2'])
  })

  test('a suspended run holds the turn of its lane only', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 1 })
    await fill(world, 'eu', 'us')
    await claimIds(world)
    for (const id of ['eu 1', 'us 1']) await world.finish(id, suspendUntil(null))
    assert.deepEqual(await claimIds(world), [])
    await world.cancel('us 1')
    assert.deepEqual(await claimIds(world), ['us 2'])
  })

  test('a change of the limit reaches lanes that were full', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 1 })
    await fill(world, 'eu', 'us')
    assert.deepEqual(await claimIds(world), ['eu 1', 'us 1'])
    assert.deepEqual(await claimIds(world), [])
    await world.configure('media', { globalConcurrency: 2 })
    assert.deepEqual(await claimIds(world), ['eu 2', 'us 2'])
    assert.deepEqual(await claimIds(world), [])
    for (const id of ['eu 1', 'us 1']) await world.finish(id, suspendUntil(null))
    assert.deepEqual(await claimIds(world), [])
    await world.configure('media', { releaseWhileWaiting: true })
    assert.deepEqual(await claimIds(world), ['eu 3', 'us 3'])
  })

  test('with releaseWhileWaiting a resume waits for room in its own lane', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 1, releaseWhileWaiting: true })
    await fill(world, 'eu', 'us')
    await claimIds(world)
    const now = world.clock.now()
    await world.finish('eu 1', suspendUntil(now + 100))
    await world.finish('us 1', suspendUntil(now + 100))
    assert.deepEqual((await claimIds(world)).toSorted(), ['eu 2', 'us 2'])
    world.clock.pass(100)
    await world.finish('us 2')
    assert.deepEqual(await claimIds(world), ['us 1'])
    await world.finish('eu 2')
    assert.deepEqual(await claimIds(world), ['eu 1'])
  })
}

function changes(test: Test): void {
  test('a limit that is raised admits at once; one that is lowered waits until enough have ended (C-10)', async (world) => {
    await world.register('media', { globalConcurrency: 2 })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c', 'd', 'e']))
    assert.deepEqual(await claimIds(world), ['a', 'b'])
    await world.configure('media', { globalConcurrency: 3 })
    assert.deepEqual(await claimIds(world), ['c'])
    await world.configure('media', { globalConcurrency: 1 })
    for (const id of ['a', 'b']) {
      await world.finish(id)
      assert.deepEqual(await claimIds(world), [])
    }
    await world.finish('c')
    assert.deepEqual(await claimIds(world), ['d'])
    await world.configure('media', { globalConcurrency: null })
    assert.deepEqual(await claimIds(world), ['e'])
  })

  test('a limit above what waits admits all', async (world) => {
    await world.register('media', { globalConcurrency: 1_000_000 })
    await world.enqueue(...runsOf('media', TOKENS))
    assert.deepEqual(await claimIds(world), TOKENS)
  })
}
