/** Settling: how a delivery ends, and that it ends once. */
import assert from 'node:assert/strict'
import type { Settlement } from '../contract.ts'
import type { Ending, Failure, FailureKind } from '../records.ts'
import { applied, CLAIM_LOST, LEASE_MS, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

const FAILURE: Failure = { kind: 'error', error: '{"message":"card refused"}' }

export function settle(test: Test): void {
  endings(test)
  releases(test)
  entriesOf(test)
  fence(test)
}

function endings(test: Test): void {
  const cases: readonly (readonly [Settlement, Ending, FailureKind | null])[] = [
    [SUCCEED, { status: 'SUCCESS', output: '"done"' }, null],
    [{ type: 'fail', failure: FAILURE }, { status: 'ERROR', failure: FAILURE }, 'error'],
    [
      { type: 'dead', failure: { kind: 'nondeterminism', error: null } },
      { status: 'DEAD', failure: { kind: 'nondeterminism', error: null } },
      'nondeterminism',
    ],
    [
      { type: 'cancel', failure: { kind: 'timeout', error: null } },
      { status: 'CANCELLED', failure: { kind: 'timeout', error: null } },
      'timeout',
    ],
  ]
  for (const [settlement, ending, failureKind] of cases) {
    test(`'${settlement.type}' ends the run ${ending.status}`, async (world) => {
      await world.start('a', 't1')
      const startedAt = world.clock.now()
      world.clock.pass(250)
      const { status } = ending
      assert.deepEqual(await world.settle('a', 't1', settlement), applied({ status, ending }))
      assertHas(await world.run('a'), {
        status,
        failureKind,
        startedAt,
        endedAt: world.clock.now(),
        leaseUntil: null,
        dueAt: null,
        token: 't1',
        attempt: 1,
      })
      assert.deepEqual(await world.ending('a'), ending)
      assert.deepEqual(await world.claim(['t2']), [])
    })
  }

  test('every kind of failure comes back as it was', async (world) => {
    const kinds: readonly FailureKind[] = [
      'error',
      'transient',
      'permanent',
      'timeout',
      'crashed',
      'cancelled',
      'nondeterminism',
      'serialization',
    ]
    for (const kind of kinds) {
      await world.start(kind, kind)
      await world.settle(kind, kind, { type: 'dead', failure: { kind, error: `"${kind}"` } })
      assert.deepEqual(await world.ending(kind), { status: 'DEAD', failure: { kind, error: `"${kind}"` } })
      assert.equal((await world.run(kind)).failureKind, kind)
    }
  })

  test('a requested cancellation outweighs whatever the settlement says', async (world) => {
    const settlements: readonly Settlement[] = [
      SUCCEED,
      { type: 'fail', failure: FAILURE },
      { type: 'dead', failure: FAILURE },
      suspendUntil(world.clock.now() + 1_000),
      RELEASE,
    ]
    const ending: Ending = { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } }
    for (const settlement of settlements) {
      const id = settlement.type
      await world.start(id, id)
      await world.cancel(id)
      const answer = await world.settle(id, id, settlement, [outcome(0)])
      assert.deepEqual(answer, applied({ status: 'CANCELLED', ending }), id)
      assert.deepEqual(await world.ending(id), ending, id)
      assert.equal((await world.history(id)).length, 1, `${id}: its steps did run`)
    }
    assert.deepEqual(await world.claim(['t9']), [])
  })
}

function releases(test: Test): void {
  test("'release' hands back: ENQUEUED at once, no attempt spent (D-29)", async (world) => {
    await world.start('a', 't1')
    assert.deepEqual(await world.settle('a', 't1', RELEASE), applied({ status: 'ENQUEUED' }))
    assertHas(await world.run('a'), {
      status: 'ENQUEUED',
      attempt: 0,
      deliveries: 1,
      crashes: 0,
      leaseUntil: null,
      startedAt: null,
      endedAt: null,
      failureKind: null,
    })
    assert.equal(await world.ending('a'), undefined)
    assert.deepEqual(await world.claimIds(['t2']), ['a'])
    assertHas(await world.run('a'), { attempt: 1, deliveries: 2 })
  })
}

function entriesOf(test: Test): void {
  test('entries are recorded together with the ending', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    await world.settle('a', 't1', SUCCEED, [outcome(1), outcome(2)])
    assert.deepEqual(
      (await world.history('a')).map(({ seq }) => seq),
      [0, 1, 2],
    )
  })

  test('an entry that a checkpoint has recorded already is not recorded again', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    await world.settle('a', 't1', SUCCEED, [outcome(0), outcome(1)])
    assert.deepEqual(
      (await world.history('a')).map(({ value }) => value),
      ['"value 0"', '"value 1"'],
    )
  })
}

function fence(test: Test): void {
  test('without the live claim, nothing is settled and no entry recorded', async (world) => {
    await world.start('held', 't1')
    await world.enqueue('enqueued')
    for (const [id, token] of [
      ['held', 'another'],
      ['enqueued', 't1'],
      ['nowhere', 't1'],
    ] as const) {
      const before = await world.everythingOf(id)
      assert.deepEqual(await world.settle(id, token, SUCCEED, [outcome(0)]), CLAIM_LOST)
      assert.deepEqual(await world.everythingOf(id), before)
    }
  })

  test('a terminal status is final: no other settlement changes it', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', SUCCEED)
    const before = await world.everythingOf('a')
    await world.settle('a', 't1', { type: 'fail', failure: FAILURE }, [outcome(0)])
    assert.deepEqual(await world.settle('a', 't2', { type: 'fail', failure: FAILURE }), CLAIM_LOST)
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('a zombie settles nothing after a reclaim, before and after the next claim (D-23)', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
    await world.claim(['t2'])
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
    assert.deepEqual(await world.settle('a', 't1', RELEASE), CLAIM_LOST)
    assertHas(await world.run('a'), { status: 'PENDING', token: 't2' })
  })

  test('who has handed back settles nothing once another has claimed', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', RELEASE)
    await world.claim(['t2'])
    assert.deepEqual(await world.settle('a', 't1', SUCCEED), CLAIM_LOST)
    assertHas(await world.run('a'), { status: 'PENDING', token: 't2' })
  })

  test('a lease that has ended but was not reclaimed still settles', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS * 10)
    await world.settle('a', 't1', SUCCEED)
    assert.equal((await world.run('a')).status, 'SUCCESS')
  })
}
