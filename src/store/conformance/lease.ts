/** Leases: renewed by their holders, taken away by a reclaim and by nothing else. */
import assert from 'node:assert/strict'
import type { ReclaimedRun } from '../contract.ts'
import { applied, LEASE_MS, newClaim, newRun, numbered, OWNER, outcome, SUCCEED, suspendUntil } from './makers.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

export function lease(test: Test): void {
  renewal(test)
  expiry(test)
  deadOwners(test)
  crashes(test)
}

function renewal(test: Test): void {
  test('a renewal moves the end of the lease, and nothing else', async (world) => {
    await world.start('a', 't1')
    const before = await world.run('a')
    world.clock.pass(10_000)
    const answer = await world.store.renew([{ runId: 'a', token: 't1' }], LEASE_MS)
    assert.deepEqual(answer, { lost: [], cancelRequested: [] })
    assert.deepEqual(await world.run('a'), { ...before, leaseUntil: world.clock.now() + LEASE_MS })
    assert.equal(await world.store.nextExpiry(), world.clock.now() + LEASE_MS)
  })

  test('tokens that hold nothing any more are answered as lost, and change nothing', async (world) => {
    await world.start('held', 't1')
    await world.start('settled', 't2')
    await world.settle('settled', 't2', SUCCEED)
    await world.start('waiting', 't3')
    await world.settle('waiting', 't3', suspendUntil(world.clock.now() + 1_000))
    await world.enqueue('enqueued')
    const ids = ['settled', 'waiting', 'enqueued']
    const before = await world.store.runs(ids)
    const answer = await world.store.renew(
      [
        { runId: 'settled', token: 't2' },
        { runId: 'held', token: 't1' },
        { runId: 'waiting', token: 't3' },
        { runId: 'enqueued', token: 't4' },
        { runId: 'held', token: 'another' },
        { runId: 'nowhere', token: 't5' },
      ],
      LEASE_MS * 2,
    )
    assert.deepEqual(answer.lost.toSorted(), ['another', 't2', 't3', 't4', 't5'])
    assert.deepEqual(await world.store.runs(ids), before)
    assert.equal((await world.run('held')).leaseUntil, world.clock.now() + LEASE_MS * 2)
  })

  test('runs that were asked to cancel are told, and renewed all the same', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.cancel('b')
    world.clock.pass(10_000)
    const claims = [
      { runId: 'a', token: 't1' },
      { runId: 'b', token: 't2' },
    ]
    assert.deepEqual(await world.store.renew(claims, LEASE_MS), { lost: [], cancelRequested: ['t2'] })
    assert.equal((await world.run('b')).leaseUntil, world.clock.now() + LEASE_MS)
  })

  test('a lease that has ended is renewed as long as nobody has taken it', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS * 3)
    const answer = await world.store.renew([{ runId: 'a', token: 't1' }], LEASE_MS)
    assert.deepEqual(answer.lost, [])
    assert.deepEqual(await reclaim(world), [])
  })

  test('no claims, and a thousand of them', async (world) => {
    assert.deepEqual(await world.store.renew([], LEASE_MS), { lost: [], cancelRequested: [] })
    const ids = numbered('run', 1_000)
    await world.enqueue(...ids.map((id) => newRun(id, { claim: newClaim(`token of ${id}`) })))
    world.clock.pass(10_000)
    const claims = ids.map((runId) => ({ runId, token: `token of ${runId}` }))
    assert.deepEqual(await world.store.renew(claims, LEASE_MS), { lost: [], cancelRequested: [] })
    world.clock.pass(LEASE_MS - 1)
    assert.deepEqual(await reclaim(world), [])
  })
}

function expiry(test: Test): void {
  test('a lease is reclaimed at its end, not a millisecond earlier', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS - 1)
    assert.deepEqual(await reclaim(world), [])
    assert.equal((await world.run('a')).status, 'PENDING')
    world.clock.pass(1)
    assert.deepEqual(await reclaim(world), [taken('a', 't1')])
    assertHas(await world.run('a'), {
      status: 'ENQUEUED',
      token: null,
      owner: OWNER,
      leaseUntil: null,
      startedAt: null,
      crashes: 1,
      attempt: 1,
      endedAt: null,
    })
    assert.deepEqual(await reclaim(world), [], 'once')
  })

  test('the next claim is a new attempt, with the history there (D-14, D-16)', async (world) => {
    await world.start('a', 't1', { timeoutMs: 3_600_000 })
    const { deadlineAt } = await world.run('a')
    await world.checkpoint('a', 't1', [outcome(0)])
    world.clock.pass(LEASE_MS)
    await reclaim(world)
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
    assertHas(await world.run('a'), {
      attempt: 2,
      deliveries: 2,
      crashes: 1,
      startedAt: world.clock.now(),
      deadlineAt,
    })
    assert.equal((await world.history('a')).length, 1)
    assert.deepEqual(await world.checkpoint('a', 't2', [outcome(1)]), applied())
  })

  test('only what has ended is taken; a renewed lease is not (D-18)', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    world.clock.pass(LEASE_MS - 1)
    await world.store.renew([{ runId: 'b', token: 't2' }], LEASE_MS)
    world.clock.pass(1)
    assert.deepEqual(await reclaim(world), [taken('a', 't1')])
    assert.equal((await world.run('b')).status, 'PENDING')
  })

  test('at most as many as asked for, and all of them in the end (D-21)', async (world) => {
    for (let n = 0; n < 7; n++) await world.start(`run ${n}`, `t${n}`)
    world.clock.pass(LEASE_MS)
    const ids: string[] = []
    for (const expected of [3, 3, 1, 0]) {
      const { runs: reclaimed } = await world.store.reclaim({ deadOwners: [], limit: 3 })
      assert.equal(reclaimed.length, expected)
      ids.push(...reclaimed.map(({ id }) => id))
    }
    assert.equal(new Set(ids).size, 7)
  })

  test('nextExpiry is the end of the lease that ends next', async (world) => {
    assert.equal(await world.store.nextExpiry(), null)
    await world.start('a', 't1', { claim: newClaim('t1', { leaseMs: 5_000 }) })
    await world.start('b', 't2', { claim: newClaim('t2', { leaseMs: 4_000 }) })
    const now = world.clock.now()
    assert.equal(await world.store.nextExpiry(), now + 4_000)
    await world.store.renew([{ runId: 'b', token: 't2' }], 6_000)
    assert.equal(await world.store.nextExpiry(), now + 5_000)
    await world.settle('a', 't1', SUCCEED)
    assert.equal(await world.store.nextExpiry(), now + 6_000)
    world.clock.pass(10_000)
    assert.equal(await world.store.nextExpiry(), now + 6_000, 'past, until it is taken')
    await reclaim(world)
    assert.equal(await world.store.nextExpiry(), null)
  })
}

function deadOwners(test: Test): void {
  test('every claim of an owner known to be dead is taken, whatever its lease', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.start('c', 't3', { claim: newClaim('t3', { owner: 'worker-2' }) })
    const unheardOf = Array.from({ length: 500 }, (_, n) => `unheard of ${n}`)
    const reclaimed = await world.reclaim([...unheardOf, OWNER])
    assert.deepEqual(byId(reclaimed), [taken('a', 't1'), taken('b', 't2')])
    assert.equal((await world.run('c')).status, 'PENDING')
  })

  test('what it does not hold any more is left alone', async (world) => {
    await world.start('settled', 't1')
    await world.settle('settled', 't1', SUCCEED)
    await world.start('waiting', 't2')
    await world.settle('waiting', 't2', suspendUntil(world.clock.now() + 1_000))
    await world.start('released', 't3')
    await world.settle('released', 't3', { type: 'release' })
    assert.deepEqual(await world.reclaim([OWNER]), [])
  })

  test('dead owners and ended leases in one call, each run once, within the limit', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2', { claim: newClaim('t2', { owner: 'worker-2' }) })
    world.clock.pass(LEASE_MS)
    await world.start('c', 't3')
    const first = await world.store.reclaim({ deadOwners: [OWNER], limit: 2 })
    assert.equal(first.runs.length, 2)
    const second = await world.store.reclaim({ deadOwners: [OWNER], limit: 2 })
    assert.deepEqual(
      byId([...first.runs, ...second.runs]).map(({ id }) => id),
      ['a', 'b', 'c'],
    )
  })
}

function crashes(test: Test): void {
  test('more crashes than maxRecoveries dead-letter the run (D-28)', async (world) => {
    await world.start('a', 't1', { maxRecoveries: 1 })
    world.clock.pass(LEASE_MS)
    await reclaim(world)
    assertHas(await world.run('a'), { status: 'ENQUEUED', crashes: 1 })
    await world.claim(['t2'])
    const startedAt = world.clock.now()
    world.clock.pass(LEASE_MS)
    const ending = { status: 'DEAD', failure: { kind: 'crashed', error: null } } as const
    assert.deepEqual(await reclaim(world), [{ ...taken('a', 't2'), status: 'DEAD', ending }])
    assertHas(await world.run('a'), {
      status: 'DEAD',
      crashes: 2,
      token: null,
      leaseUntil: null,
      failureKind: 'crashed',
      startedAt,
      endedAt: world.clock.now(),
    })
    assert.deepEqual(await world.ending('a'), ending)
    assert.deepEqual(await world.claim(['t3']), [])
  })

  test('hand-backs and suspensions are no crashes (D-29)', async (world) => {
    await world.start('a', 't0', { maxRecoveries: 0 })
    for (let n = 0; n < 5; n++) {
      await world.settle('a', `t${n}`, n % 2 === 0 ? { type: 'release' } : suspendUntil(0))
      assert.deepEqual(await world.claimIds([`t${n + 1}`]), ['a'])
    }
    assertHas(await world.run('a'), { crashes: 0, attempt: 1, deliveries: 6 })
  })
}

function reclaim(world: World): Promise<readonly ReclaimedRun[]> {
  return world.reclaim([])
}

function taken(id: string, token: string): ReclaimedRun {
  return { id, token, owner: OWNER, status: 'ENQUEUED', ending: null }
}

function byId(runs: readonly ReclaimedRun[]): readonly ReclaimedRun[] {
  return runs.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}
