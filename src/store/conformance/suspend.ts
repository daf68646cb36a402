/** Suspension: WAITING holds no lease, and time alone ends it. */
import assert from 'node:assert/strict'
import { applied, CLAIM_LOST, LEASE_MS, OWNER, outcome, SUCCEED, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function suspend(test: Test): void {
  test("'suspend' leaves the run WAITING until its instant, and holds no lease", async (world) => {
    await world.start('a', 't1')
    const startedAt = world.clock.now()
    const wakeAt = startedAt + 3_600_000
    assert.deepEqual(
      await world.settle('a', 't1', suspendUntil(wakeAt), [outcome(0)]),
      applied({ status: 'WAITING', dueAt: wakeAt }),
    )
    assertHas(await world.run('a'), {
      status: 'WAITING',
      dueAt: wakeAt,
      leaseUntil: null,
      attempt: 1,
      startedAt,
      endedAt: null,
      token: 't1',
    })
    assert.equal(await world.ending('a'), undefined)
    assert.equal((await world.history('a')).length, 1)
    assert.equal(await world.store.nextExpiry(), null)
    assert.deepEqual(await world.reclaim([OWNER]), [])
  })

  test('it is claimable at its instant, not a millisecond earlier', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 1_000))
    world.clock.pass(999)
    assert.deepEqual(await world.claim(['t2']), [])
    world.clock.pass(1)
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })

  test('an instant that is past already makes it claimable at once', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', suspendUntil(world.clock.now() - 5_000))
    assertHas(await world.run('a'), { status: 'WAITING', dueAt: world.clock.now() - 5_000 })
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })

  test('a wake-up that nobody was there for is served later (B-13)', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 1_000))
    world.clock.pass(10 * 24 * 3_600_000)
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })

  test('a resume is no attempt, and goes on with the one it interrupted', async (world) => {
    await world.start('a', 't1')
    const startedAt = world.clock.now()
    await world.settle('a', 't1', suspendUntil(startedAt + 1_000))
    world.clock.pass(1_000)
    await world.claim(['t2'])
    assertHas(await world.run('a'), {
      status: 'PENDING',
      dueAt: null,
      attempt: 1,
      deliveries: 2,
      startedAt,
      token: 't2',
      leaseUntil: world.clock.now() + LEASE_MS,
    })
    await world.settle('a', 't2', SUCCEED)
    assertHas(await world.run('a'), { status: 'SUCCESS', attempt: 1, startedAt })
  })

  test('the deadline of the run wakes it earlier', async (world) => {
    await world.start('a', 't1', { timeoutMs: 60_000 })
    const deadlineAt = world.clock.now() + 60_000
    await world.settle('a', 't1', suspendUntil(deadlineAt + 1))
    assert.equal((await world.run('a')).dueAt, deadlineAt)
    world.clock.pass(60_000)
    await world.claim(['t2'])
    assert.equal((await world.run('a')).deadlineAt, deadlineAt, 'the deadline stays through the resume')
  })

  test('the deadline is not waited for if the timer is earlier', async (world) => {
    await world.start('a', 't1', { timeoutMs: 60_000 })
    const wakeAt = world.clock.now() + 59_999
    await world.settle('a', 't1', suspendUntil(wakeAt))
    assert.equal((await world.run('a')).dueAt, wakeAt)
  })

  test('the zombie of the pass that suspended writes nothing after the resume', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', suspendUntil(world.clock.now()))
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), CLAIM_LOST)
    await world.claim(['t2'])
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), CLAIM_LOST)
    assert.deepEqual(await world.settle('a', 't1', SUCCEED, [outcome(0)]), CLAIM_LOST)
    assert.deepEqual(await world.history('a'), [])
  })

  test('a timer of more than 24.8 days is kept to the millisecond (B-01)', async (world) => {
    await world.start('a', 't1')
    const wakeAt = world.clock.now() + 2 ** 31 + 1
    await world.settle('a', 't1', suspendUntil(wakeAt))
    assert.equal(await world.nextAt(), wakeAt)
    world.clock.pass(2 ** 31)
    assert.deepEqual(await world.claim(['t2']), [])
    world.clock.pass(1)
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })
}
