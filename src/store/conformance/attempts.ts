/** The history of attempts: one line for each, and the current one last. */
import assert from 'node:assert/strict'
import type { AttemptRecord } from '../records.ts'
import { LEASE_MS, newClaim, OWNER, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import type { Test, World } from './world.ts'

export function attempts(test: Test): void {
  current(test)
  past(test)
}

function current(test: Test): void {
  test('an unknown run and one that was never claimed have none', async (world) => {
    await world.enqueue('a')
    assert.deepEqual(await world.store.attempts('a'), [])
    assert.deepEqual(await world.store.attempts('nowhere'), [])
    await world.cancel('a')
    assert.deepEqual(await world.store.attempts('a'), [])
  })

  test('the one that runs, and how it ended', async (world) => {
    for (const [settlement, outcome, failureKind] of [
      [SUCCEED, 'succeeded', null],
      [{ type: 'fail', failure: { kind: 'error', error: null } }, 'failed', 'error'],
      [{ type: 'dead', failure: { kind: 'permanent', error: null } }, 'dead', 'permanent'],
      [{ type: 'cancel', failure: { kind: 'timeout', error: null } }, 'cancelled', 'timeout'],
    ] as const) {
      const id = settlement.type
      await world.start(id, id)
      const running = attempt(world)
      assert.deepEqual(await world.store.attempts(id), [running])
      world.clock.pass(100)
      await world.settle(id, id, settlement)
      assert.deepEqual(await world.store.attempts(id), [
        { ...running, outcome, failureKind, endedAt: world.clock.now() },
      ])
    }
  })

  test('a suspension interrupts nothing: it is one attempt, under its last owner', async (world) => {
    await world.start('a', 't1')
    const running = attempt(world)
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 100))
    assert.deepEqual(await world.store.attempts('a'), [running])
    world.clock.pass(100)
    await world.claim(['t2'], { owner: 'worker-2' })
    assert.deepEqual(await world.store.attempts('a'), [{ ...running, owner: 'worker-2' }])
  })

  test('a run that was cancelled while it waited ended its attempt', async (world) => {
    await world.start('a', 't1')
    const running = attempt(world)
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 100))
    world.clock.pass(50)
    await world.cancel('a')
    assert.deepEqual(await world.store.attempts('a'), [
      { ...running, outcome: 'cancelled', failureKind: 'cancelled', endedAt: world.clock.now() },
    ])
  })
}

function past(test: Test): void {
  test('a hand-back leaves an interrupted one, a reclaim a crashed one', async (world) => {
    await world.start('a', 't1')
    const first = attempt(world)
    world.clock.pass(100)
    await world.settle('a', 't1', RELEASE)
    const interrupted: AttemptRecord = { ...first, outcome: 'interrupted', endedAt: world.clock.now() }
    assert.deepEqual(await world.store.attempts('a'), [interrupted])
    world.clock.pass(100)
    await world.claim(['t2'], { owner: 'worker-2' })
    const second: AttemptRecord = { ...attempt(world), owner: 'worker-2' }
    assert.deepEqual(await world.store.attempts('a'), [interrupted, second])
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    const crashed: AttemptRecord = {
      ...second,
      outcome: 'crashed',
      failureKind: 'crashed',
      endedAt: world.clock.now(),
    }
    assert.deepEqual(await world.store.attempts('a'), [interrupted, crashed])
    await world.claim(['t3'])
    assert.deepEqual(await world.store.attempts('a'), [interrupted, crashed, { ...attempt(world), attempt: 2 }])
  })

  test('the crash that dead-letters is the attempt that is dead, once', async (world) => {
    await world.start('a', 't1', { maxRecoveries: 0, claim: newClaim('t1') })
    const running = attempt(world)
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.store.attempts('a'), [
      { ...running, outcome: 'dead', failureKind: 'crashed', endedAt: world.clock.now() },
    ])
  })

  test('a requeue keeps the attempt that ended and leaves its own line; the next epoch counts anew', async (world) => {
    await world.start('a', 't1')
    const running = attempt(world)
    await world.settle('a', 't1', { type: 'fail', failure: { kind: 'error', error: null } })
    const failed: AttemptRecord = { ...running, outcome: 'failed', failureKind: 'error', endedAt: world.clock.now() }
    world.clock.pass(100)
    await world.requeue('a')
    const recorded = await world.store.attempts('a')
    assert.equal(recorded.length, 2)
    assert.deepEqual(recorded[0], failed)
    assert.equal(recorded[1]?.outcome, 'requeued')
    assert.equal(recorded[1].epoch, 0)
    assert.equal(recorded[1].endedAt, world.clock.now())
    await world.claim(['t2'])
    assert.deepEqual(await world.store.attempts('a'), [...recorded, { ...attempt(world), epoch: 1 }])
  })

  test('attempts of two runs are apart', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.settle('a', 't1', RELEASE)
    assert.equal((await world.store.attempts('a'))[0]?.outcome, 'interrupted')
    assert.deepEqual(await world.store.attempts('b'), [attempt(world)])
  })
}

/** A first attempt, claimed at this instant. */
function attempt(world: World): AttemptRecord {
  return {
    epoch: 0,
    attempt: 1,
    outcome: 'running',
    owner: OWNER,
    startedAt: world.clock.now(),
    endedAt: null,
    failureKind: null,
  }
}
