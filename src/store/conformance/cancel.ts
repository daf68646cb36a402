/** Cancelling: at once, unless the run is PENDING, which is asked to end. */
import assert from 'node:assert/strict'
import type { Ending } from '../records.ts'
import { applied, CLAIM_LOST, LEASE_MS, newRun, OWNER, outcome, SUCCEED, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

const ENDING: Ending = { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } }

export function cancel(test: Test): void {
  atOnce(test)
  requested(test)
  refused(test)
}

function atOnce(test: Test): void {
  test('an ENQUEUED run is CANCELLED at once and never claimed', async (world) => {
    await world.enqueue('a')
    world.clock.pass(100)
    assert.deepEqual(await world.cancel('a', 'c1'), { type: 'cancelled', rippled: false })
    assertHas(await world.run('a'), {
      status: 'CANCELLED',
      failureKind: 'cancelled',
      endedAt: world.clock.now(),
      cancelRequested: false,
      operationId: 'c1',
      dueAt: null,
    })
    assert.deepEqual(await world.ending('a'), ENDING)
    assert.deepEqual(await world.claim(['t1']), [])
  })

  test('a run on a named queue as well', async (world) => {
    await world.enqueue(newRun('a', { queue: 'media' }))
    assert.deepEqual(await world.cancel('a'), { type: 'cancelled', rippled: false })
    assert.equal((await world.run('a')).status, 'CANCELLED')
  })

  test('a WAITING run is CANCELLED at once and never wakes', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', suspendUntil(world.clock.now() + 1_000))
    assert.deepEqual(await world.cancel('a'), { type: 'cancelled', rippled: false })
    assertHas(await world.run('a'), { status: 'CANCELLED', dueAt: null })
    assert.deepEqual(await world.ending('a'), ENDING)
    world.clock.pass(5_000)
    assert.deepEqual(await world.claim(['t2']), [])
    assert.equal(await world.nextAt(), null)
  })
}

function requested(test: Test): void {
  test('a PENDING run is asked, and goes on holding its claim', async (world) => {
    await world.start('a', 't1')
    const before = await world.run('a')
    assert.deepEqual(await world.cancel('a', 'c1'), { type: 'requested', owner: OWNER, token: 't1' })
    assert.deepEqual(await world.run('a'), { ...before, cancelRequested: true, operationId: 'c1' })
    assert.equal(await world.ending('a'), undefined)
    assert.deepEqual(await world.store.cancelRequests(OWNER), [{ runId: 'a', token: 't1' }])
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied({ cancelRequested: true }))
  })

  test('a run that was asked ends CANCELLED when its claim is reclaimed, and is never redelivered', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a')
    world.clock.pass(LEASE_MS)
    assert.deepEqual(await world.reclaim(), [
      { id: 'a', token: 't1', owner: OWNER, status: 'CANCELLED', ending: ENDING },
    ])
    assertHas(await world.run('a'), { status: 'CANCELLED', token: null, crashes: 1, failureKind: 'cancelled' })
    assert.deepEqual(await world.claim(['t2']), [])
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
    assert.deepEqual(await world.store.cancelRequests(OWNER), [])
  })

  test('requests are listed by owner, until their runs have ended', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.start('c', 't3')
    await world.enqueue('d')
    await world.claim(['t4'], { owner: 'worker-2' })
    for (const id of ['a', 'b', 'd']) await world.cancel(id)
    const asked = await world.store.cancelRequests(OWNER)
    assert.deepEqual(
      asked.toSorted((x, y) => x.runId.localeCompare(y.runId)),
      [
        { runId: 'a', token: 't1' },
        { runId: 'b', token: 't2' },
      ],
    )
    assert.deepEqual(await world.store.cancelRequests('worker-2'), [{ runId: 'd', token: 't4' }])
    assert.deepEqual(await world.store.cancelRequests('nobody'), [])
    await world.settle('a', 't1', SUCCEED)
    assert.deepEqual(await world.store.cancelRequests(OWNER), [{ runId: 'b', token: 't2' }])
  })
}

function refused(test: Test): void {
  test('an unknown run is refused without a status', async (world) => {
    assert.deepEqual(await world.cancel('nowhere'), { type: 'notCancelled', status: null })
  })

  test('a run that has ended is refused with its status, and left alone', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', SUCCEED)
    await world.enqueue('b')
    await world.cancel('b')
    for (const [id, status] of [
      ['a', 'SUCCESS'],
      ['b', 'CANCELLED'],
    ] as const) {
      const before = await world.everythingOf(id)
      world.clock.pass(10)
      assert.deepEqual(await world.cancel(id), { type: 'notCancelled', status })
      assert.deepEqual(await world.everythingOf(id), before)
    }
  })

  test('a run that was asked already is refused as PENDING, and left alone', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a', 'c1')
    const before = await world.run('a')
    assert.deepEqual(await world.cancel('a', 'c2'), { type: 'notCancelled', status: 'PENDING' })
    assert.deepEqual(await world.run('a'), before)
  })
}
