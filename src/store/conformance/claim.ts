/** Claiming: who gets which run, and what the claim makes of its row. */
import assert from 'node:assert/strict'
import { DEFINITION, LEASE_MS, newClaim, newRun, numbered, OWNER, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function claim(test: Test): void {
  rows(test)
  choice(test)
  resends(test)
}

function rows(test: Test): void {
  test('a claim makes the run PENDING under its token, owner and lease, and counts the attempt', async (world) => {
    await world.enqueue('a')
    world.clock.pass(1_000)
    const [claimed, ...others] = await world.claim(['t1'])
    assert.equal(others.length, 0)
    assert.ok(claimed !== undefined)
    assert.equal(claimed.token, 't1')
    assert.equal(claimed.input, '{"order":"a"}')
    assertHas(claimed.run, {
      status: 'PENDING',
      dueAt: null,
      token: 't1',
      owner: OWNER,
      leaseUntil: world.clock.now() + LEASE_MS,
      deliveries: 1,
      attempt: 1,
      crashes: 0,
      startedAt: world.clock.now(),
      deadlineAt: null,
      endedAt: null,
    })
    assert.deepEqual(claimed.run, await world.run('a'), 'the row that was given is the row that is stored')
  })

  test('the first claim of an epoch sets the deadline, and later ones keep it', async (world) => {
    await world.enqueue(newRun('a', { timeoutMs: 60_000 }))
    assert.equal((await world.run('a')).deadlineAt, null)
    await world.claim(['t1'])
    const deadlineAt = world.clock.now() + 60_000
    assert.equal((await world.run('a')).deadlineAt, deadlineAt)
    await world.settle('a', 't1', RELEASE)
    world.clock.pass(5_000)
    await world.claim(['t2'])
    assertHas(await world.run('a'), { deadlineAt, deliveries: 2, attempt: 1, token: 't2' })
  })

  test('another owner and another lease are taken from the request', async (world) => {
    await world.enqueue('a')
    await world.claim(['t1'], { owner: 'worker-2', leaseMs: 500 })
    assertHas(await world.run('a'), { owner: 'worker-2', leaseUntil: world.clock.now() + 500 })
  })
}

function choice(test: Test): void {
  test('at most as many runs as tokens, each under a token of its own', async (world) => {
    await world.enqueue('a', 'b', 'c')
    const claimed = await world.claim(['t1', 't2'])
    assert.deepEqual(claimed.map(({ run }) => run.id).toSorted(), ['a', 'b'])
    assert.deepEqual(claimed.map(({ token }) => token).toSorted(), ['t1', 't2'])
    for (const { run, token } of claimed) assert.equal(run.token, token)
    assert.equal((await world.run('c')).status, 'ENQUEUED')
  })

  test('a thousand tokens and five hundred definitions', async (world) => {
    const definitions = numbered('definition', 500)
    const ids = numbered('run', 999)
    await world.enqueue(...ids.map((id, n) => newRun(id, { definition: `definition ${(n * 7) % 500}` })))
    const tokens = numbered('t', 1_000)
    assert.deepEqual(await world.claimIds(tokens, { definitions }), ids)
    assert.deepEqual((await world.claimIds(tokens, { definitions })).toSorted(), ids.toSorted(), 'resent')
  })

  test('nothing to claim, or no tokens, gives nothing', async (world) => {
    assert.deepEqual(await world.claim(['t1']), [])
    await world.enqueue('a')
    assert.deepEqual(await world.claim([]), [])
    assert.equal((await world.run('a')).status, 'ENQUEUED')
  })

  test('only runs of the definitions named (D-20)', async (world) => {
    await world.enqueue(newRun('a', { definition: 'unknown here' }), newRun('b'), newRun('c', { definition: 'refund' }))
    assert.deepEqual(await world.claim(['t1'], { definitions: [] }), [])
    assert.deepEqual(await world.claimIds(['t1', 't2', 't3'], { definitions: ['refund', DEFINITION] }), ['b', 'c'])
    assert.equal((await world.run('a')).status, 'ENQUEUED')
  })

  test('only runs of the internal queue', async (world) => {
    await world.enqueue(newRun('a', { queue: 'media' }), newRun('b'))
    assert.deepEqual(await world.claimIds(['t1', 't2']), ['b'])
  })

  test('a run that is PENDING, WAITING for later or ended is not claimed', async (world) => {
    await world.start('pending', 't1')
    await world.start('waiting', 't2')
    await world.settle('waiting', 't2', suspendUntil(world.clock.now() + 1))
    await world.start('ended', 't3')
    await world.settle('ended', 't3', SUCCEED)
    await world.enqueue('cancelled')
    await world.cancel('cancelled')
    assert.deepEqual(await world.claim(['t4', 't5', 't6', 't7']), [])
  })

  test('a lease that has ended is not for claiming: only a reclaim takes it', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS * 10)
    assert.deepEqual(await world.claim(['t2']), [])
    assertHas(await world.run('a'), { status: 'PENDING', token: 't1' })
  })
}

function resends(test: Test): void {
  test('a run held under one of the tokens is answered again, before new ones', async (world) => {
    await world.enqueue('a', 'b', 'c')
    const [first] = await world.claim(['t1'])
    world.clock.pass(1_000)
    const [again, next, ...others] = await world.claim(['t2', 't1'])
    assert.deepEqual(again, first, 'the claim as it was made, not a second one')
    assert.equal(next?.run.id, 'b')
    assert.equal(next?.token, 't2')
    assert.equal(others.length, 0)
    assertHas(await world.run('a'), { deliveries: 1, attempt: 1 })
  })

  test('a resend that finds all its tokens held claims nothing more', async (world) => {
    await world.enqueue('a', 'b', 'c')
    const first = await world.claim(['t1', 't2'])
    assert.deepEqual(await world.claim(['t1', 't2']), first)
    assert.equal((await world.run('c')).status, 'ENQUEUED')
  })

  test('a direct start is answered again as well', async (world) => {
    await world.enqueue(newRun('a', { claim: newClaim('t1') }), 'b')
    assert.deepEqual(await world.claimIds(['t1']), ['a'])
  })
}
