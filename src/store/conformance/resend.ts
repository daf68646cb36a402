/**
 * Resends: a connection lost after the commit leaves the outcome unknown, and the same command comes again. It
 * recognises itself, changes nothing more, and answers as it did the first time.
 */
import assert from 'node:assert/strict'
import type { Command } from '../contract.ts'
import {
  accepted,
  applied,
  CLAIM_LOST,
  LEASE_MS,
  newClaim,
  newRun,
  OWNER,
  outcome,
  RELEASE,
  SUCCEED,
  suspendUntil,
} from './makers.ts'
import type { Test } from './world.ts'

export function resend(test: Test): void {
  starts(test)
  settlements(test)
  operations(test)
}

function starts(test: Test): void {
  test('a start that is resent created its runs', async (world) => {
    await world.enqueue('before')
    const start: Command = { type: 'enqueue', commandId: 'c1', runs: [newRun('a'), newRun('before'), newRun('b')] }
    const first = await world.commit(start)
    const before = await world.everythingOf('a')
    world.clock.pass(1_000)
    assert.deepEqual(await world.commit(start), first)
    assert.deepEqual(await world.everythingOf('a'), before)
    assert.equal((await world.store.list({ limit: 10 })).length, 3)
  })

  test('a direct start that is resent still holds its claim', async (world) => {
    const start: Command = { type: 'enqueue', commandId: 'c1', runs: [newRun('a', { claim: newClaim('t1') })] }
    const first = await world.commit(start)
    const before = await world.everythingOf('a')
    world.clock.pass(1_000)
    assert.deepEqual(await world.commit(start), first)
    assert.deepEqual(await world.everythingOf('a'), before)
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied())
  })

  test('a direct start that is resent after its claim was lost does not claim again', async (world) => {
    const start: Command = { type: 'enqueue', commandId: 'c1', runs: [newRun('a', { claim: newClaim('t1') })] }
    await world.commit(start)
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.commit(start), accepted('a'))
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), CLAIM_LOST)
  })

  test('a start that names a run twice answers the same when resent', async (world) => {
    const start: Command = { type: 'enqueue', commandId: 'c1', runs: [newRun('a'), newRun('a')] }
    assert.deepEqual(await world.commit(start), await world.commit(start))
  })

  test('a mismatch that is resent is one again', async (world) => {
    await world.enqueue('a')
    const start: Command = { type: 'enqueue', commandId: 'c1', runs: [newRun('b'), newRun('a', { inputHash: 'x' })] }
    assert.deepEqual(await world.commit(start), await world.commit(start))
    assert.deepEqual(await world.store.runs(['b']), [undefined])
  })

  test('another start of the same run is no resend', async (world) => {
    await world.commit({ type: 'enqueue', commandId: 'c1', runs: [newRun('a')] })
    assert.deepEqual(
      await world.commit({ type: 'enqueue', commandId: 'c2', runs: [newRun('a')] }),
      accepted({ id: 'a', created: false }),
    )
  })
}

function settlements(test: Test): void {
  for (const [settlement, status] of [
    [SUCCEED, 'SUCCESS'],
    [{ type: 'fail', failure: { kind: 'error', error: null } }, 'ERROR'],
    [{ type: 'dead', failure: { kind: 'permanent', error: null } }, 'DEAD'],
    [{ type: 'cancel', failure: { kind: 'timeout', error: null } }, 'CANCELLED'],
    [suspendUntil(0), 'WAITING'],
    [RELEASE, 'ENQUEUED'],
  ] as const) {
    test(`'${settlement.type}' that is resent is applied, and ends nothing a second time`, async (world) => {
      await world.start('a', 't1')
      await world.settle('a', 't1', settlement, [outcome(0)])
      const before = await world.everythingOf('a')
      const { dueAt } = await world.run('a')
      world.clock.pass(1_000)
      assert.deepEqual(await world.settle('a', 't1', settlement, [outcome(0)]), applied({ status, dueAt }))
      assert.deepEqual(await world.everythingOf('a'), before)
    })
  }

  test('a settlement that a requested cancellation outweighed is recognised too', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a')
    await world.settle('a', 't1', SUCCEED)
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), applied({ status: 'CANCELLED' }))
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('a hand-back that is resent after a cancellation answers what the run is now', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', RELEASE)
    await world.cancel('a')
    assert.deepEqual(await world.settle('a', 't1', RELEASE), applied({ status: 'CANCELLED' }))
  })
}

function operations(test: Test): void {
  test('a cancellation that is resent was the one that cancelled', async (world) => {
    await world.enqueue('a')
    await world.cancel('a', 'c1')
    const before = await world.everythingOf('a')
    world.clock.pass(1_000)
    assert.deepEqual(await world.cancel('a', 'c1'), { type: 'cancelled', rippled: false })
    assert.deepEqual(await world.everythingOf('a'), before)
    assert.deepEqual(await world.cancel('a', 'c2'), { type: 'notCancelled', status: 'CANCELLED' })
  })

  test('a request that is resent was the one that requested, also when the run has ended by then', async (world) => {
    await world.start('a', 't1')
    const first = await world.cancel('a', 'c1')
    assert.deepEqual(first, { type: 'requested', owner: OWNER, token: 't1' })
    assert.deepEqual(await world.cancel('a', 'c1'), first)
    await world.settle('a', 't1', SUCCEED)
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.cancel('a', 'c1'), first)
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('a requeue that is resent was the one that requeued, also when the run has moved on', async (world) => {
    await world.enqueue('a')
    await world.cancel('a')
    await world.requeue('a', 'r1')
    const enqueued = await world.everythingOf('a')
    assert.deepEqual(await world.requeue('a', 'r1'), { type: 'requeued' })
    assert.deepEqual(await world.everythingOf('a'), enqueued)
    assert.deepEqual(await world.requeue('a', 'r2'), { type: 'notRequeued', status: 'ENQUEUED', holder: null })
    await world.claim(['t1'])
    await world.settle('a', 't1', { type: 'fail', failure: { kind: 'error', error: null } })
    const ended = await world.everythingOf('a')
    assert.deepEqual(await world.requeue('a', 'r1'), { type: 'requeued' })
    assert.deepEqual(await world.everythingOf('a'), ended)
  })
}
