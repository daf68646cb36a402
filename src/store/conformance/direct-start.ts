/** Direct starts: recorded and claimed in one commit. */
import assert from 'node:assert/strict'
import { accepted, applied, LEASE_MS, newClaim, newRun, OWNER, outcome, SUCCEED } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function directStart(test: Test): void {
  test('the run is PENDING at once, as after any claim', async (world) => {
    const run = newRun('a', { claim: newClaim('t1', { leaseMs: 12_345 }), timeoutMs: 60_000 })
    assert.deepEqual(await world.enqueue(run), accepted({ id: 'a', status: 'PENDING' }))
    const now = world.clock.now()
    assertHas(await world.run('a'), {
      status: 'PENDING',
      token: 't1',
      owner: OWNER,
      leaseUntil: now + 12_345,
      deliveries: 1,
      attempt: 1,
      crashes: 0,
      createdAt: now,
      startedAt: now,
      deadlineAt: now + 60_000,
      epoch: 0,
    })
    assert.deepEqual(await world.claim(['t2']), [])
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied())
    await world.settle('a', 't1', SUCCEED)
    assert.equal((await world.run('a')).status, 'SUCCESS')
  })

  test('a run that exists is not claimed by it', async (world) => {
    await world.enqueue('a')
    assert.deepEqual(await world.enqueue(newRun('a', { claim: newClaim('t1') })), accepted({ id: 'a', created: false }))
    assertHas(await world.run('a'), { status: 'ENQUEUED', token: null, deliveries: 0 })
  })

  test('claimed and enqueued runs mix in one command', async (world) => {
    await world.enqueue(newRun('a', { claim: newClaim('t1') }), 'b', newRun('c', { claim: newClaim('t2') }))
    assert.deepEqual(await world.claimIds(['t3', 't4']), ['b'])
    assert.equal(await world.store.nextExpiry(), world.clock.now() + LEASE_MS)
  })

  test('its lease can be renewed, lost and reclaimed like any other', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS)
    const [reclaimed] = await world.reclaim()
    assert.deepEqual(reclaimed, { id: 'a', token: 't1', owner: OWNER, status: 'ENQUEUED', ending: null })
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
  })
}
