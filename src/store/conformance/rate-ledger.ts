/** The ledger of starts: nothing but claims writes it, and whatever the rate is now counts from what it holds. */
import assert from 'node:assert/strict'
import { FAIL, numbered } from './makers.ts'
import { type ClaimFields, from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'

const MEDIA: ClaimFields = { sources: [from('media')] }
const TWO_A_SECOND = { rateLimit: { limit: 2, periodMs: 1_000 } } as const

export function rateLedger(test: Test): void {
  ledger(test)
  changes(test)
  clocks(test)
}

function claimIds(world: World, tokens = 10): Promise<readonly string[]> {
  return world.claimUpTo(tokens, MEDIA)
}

async function fill(world: World, count: number): Promise<void> {
  await world.enqueue(...runsOf('media', numbered('run', count)))
}

function ledger(test: Test): void {
  test('a requeue gives no start back (Q13)', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 2)
    await claimIds(world)
    await world.finish('run 0', FAIL)
    await world.requeue('run 0')
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1_000)
    assert.deepEqual(await claimIds(world), ['run 0'])
  })

  test('retention gives no start back', async (world) => {
    await world.register('media', { ...TWO_A_SECOND, retention: { success: 0, error: 0, dead: 0, cancelled: 0 } })
    await fill(world, 3)
    const begun = await claimIds(world)
    for (const id of begun) await world.finish(id)
    world.clock.pass(1)
    const { removed } = await world.sweep([{ name: 'charge', retention: null }])
    assert.equal(removed, 2)
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(999)
    assert.deepEqual(await claimIds(world), ['run 2'])
  })

  test('the ledger outlives the process that wrote it', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 3)
    await claimIds(world)
    await world.store.close()
    await world.store.open()
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1_000)
    assert.deepEqual(await claimIds(world), ['run 2'])
  })

  test('thousands of starts, and the window is as exact as at the first', async (world) => {
    await world.register('media', { rateLimit: { limit: 100, periodMs: 1_000 } })
    await fill(world, 2_000)
    for (let n = 0; n < 15; n++) {
      assert.equal((await claimIds(world, 150)).length, 100, `window ${n}`)
      world.clock.pass(999)
      assert.equal((await claimIds(world, 150)).length, 0, `window ${n}`)
      world.clock.pass(1)
    }
  })
}

function changes(test: Test): void {
  test('a limit that is raised admits the difference at once', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 9)
    await claimIds(world)
    await world.configure('media', { rateLimit: { limit: 5, periodMs: 1_000 } })
    assert.equal((await claimIds(world)).length, 3)
    assert.deepEqual(await claimIds(world), [])
  })

  test('a limit that is lowered counts the newest starts', async (world) => {
    await world.register('media', { rateLimit: { limit: 3, periodMs: 1_000 } })
    await fill(world, 9)
    await claimIds(world, 2)
    world.clock.pass(400)
    await claimIds(world, 1)
    await world.configure('media', { rateLimit: { limit: 1, periodMs: 1_000 } })
    world.clock.pass(600)
    assert.deepEqual(await claimIds(world), [], 'the newest start is 600 ms old')
    assert.equal(await world.nextAt(MEDIA), world.clock.now() + 400)
    world.clock.pass(400)
    assert.equal((await claimIds(world)).length, 1)
  })

  test('a period that grows counts the newest starts, though they were past the old one', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 9)
    const now = world.clock.now()
    await claimIds(world)
    world.clock.pass(5_000)
    await world.configure('media', { rateLimit: { limit: 2, periodMs: 60_000 } })
    assert.equal(await world.nextAt(MEDIA), now + 60_000)
    await world.configure('media', { rateLimit: { limit: 2, periodMs: 4_000 } })
    assert.equal((await claimIds(world)).length, 2, 'one that shrinks opens at once')
  })

  test('the newest starts are kept, however long ago they were', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 9)
    const now = world.clock.now()
    await claimIds(world)
    world.clock.pass(5_000)
    assert.equal((await claimIds(world, 1)).length, 1)
    await world.configure('media', { rateLimit: { limit: 2, periodMs: 60_000 } })
    assert.deepEqual(await claimIds(world), [], 'the last but one start was 5 s ago')
    assert.equal(await world.nextAt(MEDIA), now + 60_000)
  })

  test('a limit that is taken away bounds nothing', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 9)
    await claimIds(world)
    await world.configure('media', { rateLimit: null })
    assert.equal((await claimIds(world)).length, 7)
  })
}

function clocks(test: Test): void {
  test('a clock that is set back holds the lane up for one period at most', async (world) => {
    await world.register('media', TWO_A_SECOND)
    await fill(world, 5)
    await claimIds(world)
    world.clock.pass(-3_600_000)
    assert.equal(await world.nextAt(MEDIA), world.clock.now() + 1_000)
    world.clock.pass(999)
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1)
    assert.equal((await claimIds(world)).length, 2)
    assert.deepEqual(await claimIds(world), [])
    world.clock.pass(1_000)
    assert.equal((await claimIds(world)).length, 1)
  })
}
