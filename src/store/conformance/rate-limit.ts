/** The rate limit: so many starts of a lane in any window, told by a ledger that nothing but claims writes. */
import assert from 'node:assert/strict'
import type { EpochMs } from '../../core/clock.ts'
import { FAIL, LEASE_MS, newRun, numbered, RELEASE, suspendUntil } from './makers.ts'
import { type ClaimFields, from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'

const MEDIA: ClaimFields = { sources: [from('media')] }
const TWO_A_SECOND = { rateLimit: { limit: 2, periodMs: 1_000 } } as const

export function rateLimit(test: Test): void {
  windows(test)
  starts(test)
  partitions(test)
}

function claimIds(world: World, tokens = 10, fields: ClaimFields = MEDIA): Promise<readonly string[]> {
  return world.claimUpTo(tokens, fields)
}

async function fill(world: World, count: number, key: string | null = null): Promise<readonly string[]> {
  const ids = numbered(key ?? 'run', count)
  await world.enqueue(...runsOf('media', ids, { partitionKey: key }))
  return ids
}

/** Sleeps from `nextAt` to `nextAt` as a dispatcher does, and tells when it started how many. */
async function dispatch(world: World, rounds: number): Promise<readonly (readonly [EpochMs, number])[]> {
  const begun = world.clock.now()
  const claimed: (readonly [EpochMs, number])[] = []
  for (let n = 0; n < rounds; n++) {
    const round = world.commandId()
    const tokens = Array.from({ length: 10 }, (_, k) => `${round} ${k}`)
    const { runs, nextAt } = await world.claimOutcome(tokens, MEDIA)
    if (runs.length > 0) claimed.push([world.clock.now() - begun, runs.length])
    if (nextAt === null) break
    world.clock.pass(nextAt - world.clock.now())
  }
  return claimed
}

function windows(test: Test): void {
  test('so many starts in any window, to the millisecond', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 9)
    assert.equal((await claimIds(world, 1)).length, 1)
    world.clock.pass(300)
    assert.equal((await claimIds(world)).length, 1)
    for (const [ms, count] of [
      [699, 0],
      [1, 1],
      [299, 0],
      [1, 1],
      [699, 0],
      [1, 1],
    ] as const) {
      world.clock.pass(ms)
      assert.equal((await claimIds(world)).length, count, `after ${ms} ms more`)
    }
  })

  test('nextAt is the instant at which the window opens, as long as something waits for it', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 3)
    const now = world.clock.now()
    const first = await world.claimOutcome(['a'], MEDIA)
    assert.deepEqual([first.runs.length, first.nextAt], [1, null], 'not for want of tokens')
    world.clock.pass(300)
    const second = await world.claimOutcome(['b', 'c'], MEDIA)
    assert.deepEqual([second.runs.length, second.nextAt], [1, now + 1_000])
    world.clock.pass(100)
    assert.equal(await world.nextAt(MEDIA), now + 1_000)
    await world.cancel('run 2')
    assert.equal(await world.nextAt(MEDIA), null)
  })

  test('who sleeps until nextAt starts all at the earliest instants', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 7)
    assert.deepEqual(await dispatch(world, 20), [
      [0, 2],
      [1_000, 2],
      [2_000, 2],
      [3_000, 1],
    ])
  })

  test('a limit of one in a long period', async (world) => {
    await world.register('media', { rateLimit: { limit: 1, periodMs: 2 ** 31 + 5 } })
    await fill(world, 2)
    await claimIds(world)
    assert.equal(await world.nextAt(MEDIA), world.clock.now() + 2 ** 31 + 5)
    world.clock.pass(2 ** 31 + 4)
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1)
    assert.deepEqual(await claimIds(world), ['run 1'])
  })

  test('an item that is due later changes no cadence (C-11)', async (world) => {
    await world.register('media', { rateLimit: { limit: 1, periodMs: 2_000 } })
    const begun = world.clock.now()
    await world.enqueue(newRun('late', { queue: 'media', due: { type: 'after', ms: 5_000 } }))
    await fill(world, 4)
    assert.deepEqual(await dispatch(world, 20), [
      [0, 1],
      [2_000, 1],
      [4_000, 1],
      [6_000, 1],
      [8_000, 1],
    ])
    assert.equal((await world.run('late')).startedAt, begun + 6_000)
  })
}

function starts(test: Test): void {
  test('a start counts whatever becomes of it: ended, failed, handed back, crashed (Q12)', async (world) => {
    for (const [queue, end] of [
      ['ended', (id: string) => world.finish(id)],
      ['failed', (id: string) => world.finish(id, FAIL)],
      ['released', (id: string) => world.finish(id, RELEASE)],
      ['cancelled', (id: string) => world.cancel(id)],
      ['crashed', () => world.reclaim(['worker-1'])],
    ] as const) {
      await world.register(queue, { rateLimit: { limit: 1, periodMs: LEASE_MS * 2 } })
      await world.enqueue(...runsOf(queue, [`${queue} 1`, `${queue} 2`]))
      const fields = { sources: [from(queue)] }
      const [id] = await claimIds(world, 10, fields)
      assert.ok(id !== undefined)
      await end(id)
      assert.deepEqual(await claimIds(world, 10, fields), [], queue)
      world.clock.pass(LEASE_MS * 2)
      assert.equal((await claimIds(world, 10, fields)).length, 1, queue)
    }
  })

  test('the second start of a run after a crash needs room like any other (Q13)', async (world) => {
    await world.register('media', { rateLimit: { limit: 2, periodMs: LEASE_MS * 10 } })
    const ids = await fill(world, 4)
    assert.deepEqual(await claimIds(world), ids.slice(0, 2))
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(LEASE_MS * 9)
    assert.deepEqual(await claimIds(world), ids.slice(0, 2), 'at their old places')
    await world.reclaim()
    assert.deepEqual(await claimIds(world), [])
  })

  test('a resume is no start: it needs no room, and takes none', async (world) => {
    await world.register('media', TWO_A_SECOND)
    const ids = await fill(world, 4)
    await claimIds(world)
    for (let n = 0; n < 5; n++) {
      await world.finish('run 0', suspendUntil(world.clock.now()))
      assert.deepEqual(await claimIds(world), ['run 0'])
    }
    world.clock.pass(1_000)
    await world.finish('run 0', suspendUntil(world.clock.now()))
    assert.deepEqual(await claimIds(world), ['run 0', ...ids.slice(2)])
  })

  test('a claim that is resent is no second start', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 3)
    const first = await world.claim(['t1'], MEDIA)
    assert.deepEqual(await world.claim(['t1'], MEDIA), first)
    assert.equal((await claimIds(world)).length, 1)
  })

  test('a start that was refused by another limit counts for nothing', async (world) => {
    await world.register('media', { ...TWO_A_SECOND, globalConcurrency: 1 })
    await fill(world, 3)
    await claimIds(world)
    for (let n = 0; n < 3; n++) assert.deepEqual(await claimIds(world), [])
    await world.finish('run 0')
    assert.deepEqual(await claimIds(world), ['run 1'])
    await world.finish('run 1')
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1_000)
    assert.deepEqual(await claimIds(world), ['run 2'])
  })

  test('every version and definition starts from one ledger', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']), newRun('d', { queue: 'media', definition: 'refund' }))
    assert.equal((await claimIds(world, 1, { ...MEDIA, version: 'v1' })).length, 1)
    assert.deepEqual(await claimIds(world, 1, { ...MEDIA, definitions: ['refund'], version: 'v2' }), ['d'])
    for (const version of ['v1', 'v2', null]) {
      assert.deepEqual(await claimIds(world, 5, { ...MEDIA, definitions: ['charge', 'refund'], version }), [])
    }
  })
}

function partitions(test: Test): void {
  test('each lane has the rate to itself, and nextAt is the first to open', async (world) => {
    await world.register('media', { ...TWO_A_SECOND, partitioned: true })
    await fill(world, 3, 'eu')
    const now = world.clock.now()
    assert.deepEqual(await claimIds(world), ['eu 0', 'eu 1'])
    world.clock.pass(100)
    await fill(world, 3, 'us')
    assert.deepEqual(await claimIds(world), ['us 0', 'us 1'])
    assert.equal(await world.nextAt(MEDIA), now + 1_000)
    world.clock.pass(900)
    assert.deepEqual(await claimIds(world), ['eu 2'])
    assert.equal(await world.nextAt(MEDIA), now + 1_100)
    world.clock.pass(100)
    assert.deepEqual(await claimIds(world), ['us 2'])
    assert.equal(await world.nextAt(MEDIA), null)
  })

  test('a lane that was empty for a while is known by its starts', async (world) => {
    await world.register('media', { rateLimit: { limit: 1, periodMs: 1_000 }, partitioned: true })
    await fill(world, 1, 'eu')
    const now = world.clock.now()
    assert.deepEqual(await claimIds(world), ['eu 0'])
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(500)
    await world.enqueue(...runsOf('media', ['eu again'], { partitionKey: 'eu' }))
    assert.equal(await world.nextAt(MEDIA), now + 1_000)
    world.clock.pass(500)
    assert.deepEqual(await claimIds(world), ['eu again'])
  })

  test('a change of the rate reaches lanes that were closed', async (world) => {
    await world.register('media', { ...TWO_A_SECOND, partitioned: true })
    for (const key of ['eu', 'us']) await fill(world, 5, key)
    await claimIds(world)
    assert.deepEqual(await claimIds(world), [])
    await world.configure('media', { rateLimit: { limit: 3, periodMs: 1_000 } })
    assert.deepEqual((await claimIds(world)).toSorted(), ['eu 2', 'us 2'])
    assert.deepEqual(await claimIds(world), [])
    await world.configure('media', { rateLimit: { limit: 3, periodMs: 10 } })
    world.clock.pass(10)
    assert.deepEqual((await claimIds(world, 2)).toSorted(), ['eu 3', 'us 3'])
    await world.configure('media', { rateLimit: null })
    assert.deepEqual((await claimIds(world)).toSorted(), ['eu 4', 'us 4'])
  })

  test('who sleeps until nextAt serves every lane at its rate', async (world) => {
    await world.register('media', { rateLimit: { limit: 1, periodMs: 1_000 }, partitioned: true })
    for (const key of ['eu', 'us', 'jp']) await fill(world, 3, key)
    assert.deepEqual(await dispatch(world, 20), [
      [0, 3],
      [1_000, 3],
      [2_000, 3],
    ])
  })
}
