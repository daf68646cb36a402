/** Requeue: a new epoch of a run that ended ERROR, DEAD or CANCELLED. */
import assert from 'node:assert/strict'
import type { Settlement } from '../contract.ts'
import { CLAIM_LOST, LEASE_MS, outcome, SUCCEED, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function requeue(test: Test): void {
  epochs(test)
  histories(test)
  refused(test)
}

function epochs(test: Test): void {
  const failure = { kind: 'permanent', error: '"no"' } as const
  const settlements: readonly Settlement[] = [
    { type: 'fail', failure },
    { type: 'dead', failure },
    { type: 'cancel', failure },
  ]
  for (const settlement of settlements) {
    test(`a run that ended by '${settlement.type}' is ENQUEUED again, as if new`, async (world) => {
      await world.start('a', 't1', { timeoutMs: 60_000 })
      const { seq, createdAt, startId } = await world.run('a')
      world.clock.pass(100)
      await world.settle('a', 't1', settlement)
      world.clock.pass(100)
      assert.deepEqual(await world.requeue('a', 'r1'), { type: 'requeued' })
      assertHas(await world.run('a'), {
        seq,
        createdAt,
        startId,
        status: 'ENQUEUED',
        operationId: 'r1',
        token: null,
        owner: null,
        leaseUntil: null,
        dueAt: null,
        epoch: 1,
        deliveries: 1,
        attempt: 0,
        crashes: 0,
        timeoutMs: 60_000,
        deadlineAt: null,
        cancelRequested: false,
        startedAt: null,
        endedAt: null,
        failureKind: null,
      })
      assert.equal(await world.ending('a'), undefined)
      assert.deepEqual(await world.store.inputs(['a']), ['{"order":"a"}'])
    })
  }

  test('the next claim counts from one and sets a new deadline (W21)', async (world) => {
    await world.start('a', 't1', { timeoutMs: 60_000 })
    await world.settle('a', 't1', { type: 'fail', failure })
    world.clock.pass(600_000)
    await world.requeue('a')
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
    assertHas(await world.run('a'), {
      epoch: 1,
      attempt: 1,
      deliveries: 2,
      deadlineAt: world.clock.now() + 60_000,
    })
    await world.settle('a', 't2', SUCCEED)
    assert.deepEqual(await world.ending('a'), { status: 'SUCCESS', output: '"done"' })
  })

  test('a cancellation that was asked for is forgotten', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a')
    await world.settle('a', 't1', SUCCEED)
    await world.requeue('a')
    assert.equal((await world.run('a')).cancelRequested, false)
    await world.claim(['t2'])
    await world.settle('a', 't2', SUCCEED)
    assert.equal((await world.run('a')).status, 'SUCCESS')
  })

  test('crashes of the epoch before count no more', async (world) => {
    await world.start('a', 't1', { maxRecoveries: 0 })
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assertHas(await world.run('a'), { status: 'DEAD', crashes: 1 })
    await world.requeue('a')
    assertHas(await world.run('a'), { status: 'ENQUEUED', crashes: 0 })
  })

  test('the zombie of the epoch before writes nothing', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', { type: 'fail', failure })
    await world.requeue('a')
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), CLAIM_LOST)
  })

  test('again and again, each an epoch of its own', async (world) => {
    await world.enqueue('a')
    for (const epoch of [1, 2, 3]) {
      await world.cancel('a')
      assert.deepEqual(await world.requeue('a'), { type: 'requeued' })
      assertHas(await world.run('a'), { status: 'ENQUEUED', epoch })
    }
  })
}

function histories(test: Test): void {
  const dead: Settlement = { type: 'dead', failure: { kind: 'error', error: null } }

  test('what succeeded before the first failure stays; the failure and all after it goes', async (world) => {
    await world.start('a', 't1')
    const entries = [outcome(0), outcome(1), outcome(2, { failed: true }), outcome(3), outcome(4, { failed: true })]
    await world.checkpoint('a', 't1', entries)
    const [first, second] = await world.history('a')
    await world.settle('a', 't1', dead)
    world.clock.pass(100)
    await world.requeue('a')
    assert.deepEqual(await world.history('a'), [first, second])
    await world.claim(['t2'])
    await world.checkpoint('a', 't2', [outcome(2, { value: '"this time"' }), outcome(3)])
    assert.deepEqual(
      (await world.history('a')).map(({ value }) => value),
      ['"value 0"', '"value 1"', '"this time"', '"value 3"'],
    )
  })

  test('a history without failures stays whole', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', dead, [outcome(0), outcome(1)])
    await world.requeue('a')
    assert.equal((await world.history('a')).length, 2)
  })

  test('a failure at the start leaves nothing, also the second time', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', dead, [outcome(0, { failed: true }), outcome(1)])
    await world.requeue('a')
    assert.deepEqual(await world.history('a'), [])
    await world.claim(['t2'])
    await world.settle('a', 't2', dead, [outcome(0, { failed: true })])
    await world.requeue('a')
    assert.deepEqual(await world.history('a'), [])
  })
}

function refused(test: Test): void {
  test('an unknown run is refused without a status', async (world) => {
    assert.deepEqual(await world.requeue('nowhere'), { type: 'notRequeued', status: null, holder: null })
  })

  test('a run that has not ended, or succeeded, is refused with its status and left alone', async (world) => {
    await world.enqueue('ENQUEUED')
    await world.start('PENDING', 't1')
    await world.start('WAITING', 't2')
    await world.settle('WAITING', 't2', suspendUntil(world.clock.now() + 1_000))
    await world.start('SUCCESS', 't3')
    await world.settle('SUCCESS', 't3', SUCCEED)
    for (const status of ['ENQUEUED', 'PENDING', 'WAITING', 'SUCCESS'] as const) {
      const before = await world.everythingOf(status)
      assert.deepEqual(await world.requeue(status), { type: 'notRequeued', status, holder: null })
      assert.deepEqual(await world.everythingOf(status), before)
    }
  })
}
