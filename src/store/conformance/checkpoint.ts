/** Checkpoints: the history of a run, written once, under the claim's fence. */
import assert from 'node:assert/strict'
import type { NewCheckpoint } from '../commands.ts'
import { applied, CLAIM_LOST, LEASE_MS, outcome, RELEASE, SUCCEED } from './makers.ts'
import type { Test } from './world.ts'

export function checkpoint(test: Test): void {
  recording(test)
  writtenOnce(test)
  fence(test)
}

function recording(test: Test): void {
  test('entries are stored as they are, with the instant of their record', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(777)
    const entries: readonly NewCheckpoint[] = [
      outcome(0, { value: null, verb: 'now', name: '' }),
      outcome(1, { failed: true, value: '{"message":"no"}', attempts: 3, calls: 7, delivered: 1, notes: '[[0,2]]' }),
      outcome(2, { type: 'timer', verb: 'sleep', value: String(world.clock.now() + 5), position: 9 }),
      outcome(3, { type: 'order', verb: '', name: '', position: -1, value: null, delivered: 2 }),
    ]
    assert.deepEqual(await world.checkpoint('a', 't1', entries), applied())
    const recordedAt = world.clock.now()
    assert.deepEqual(
      await world.history('a'),
      entries.map((entry) => ({ ...entry, recordedAt })),
    )
  })

  test('several checkpoints follow each other in order of seq', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0), outcome(1)])
    await world.checkpoint('a', 't1', [outcome(2)])
    await world.checkpoint('a', 't1', [outcome(3), outcome(4)])
    assert.deepEqual(
      (await world.history('a')).map(({ seq, name }) => [seq, name]),
      [0, 1, 2, 3, 4].map((seq) => [seq, `step ${seq}`]),
    )
  })

  test('more entries than digits sort alike: seq is a number', async (world) => {
    await world.start('a', 't1')
    const entries = Array.from({ length: 120 }, (_, seq) => outcome(seq))
    await world.checkpoint('a', 't1', entries)
    assert.deepEqual(
      (await world.history('a')).map(({ seq }) => seq),
      entries.map(({ seq }) => seq),
    )
  })

  test('no entries is a look at the claim, and changes nothing', async (world) => {
    await world.start('a', 't1')
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.checkpoint('a', 't1', []), applied())
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('histories of two runs are apart', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.checkpoint('a', 't1', [outcome(0, { value: '"of a"' })])
    await world.checkpoint('b', 't2', [outcome(0, { value: '"of b"' })])
    assert.equal((await world.history('a'))[0]?.value, '"of a"')
    assert.equal((await world.history('b'))[0]?.value, '"of b"')
  })

  test('the outcome tells that the run was asked to cancel', async (world) => {
    await world.start('a', 't1')
    await world.cancel('a')
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied({ cancelRequested: true }))
    assert.equal((await world.history('a')).length, 1)
  })

  test('a history outlives the deliveries that wrote it', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    await world.settle('a', 't1', RELEASE, [outcome(1)])
    await world.claim(['t2'])
    await world.checkpoint('a', 't2', [outcome(2)])
    assert.deepEqual(
      (await world.history('a')).map(({ seq }) => seq),
      [0, 1, 2],
    )
  })
}

function writtenOnce(test: Test): void {
  test('a resend is applied, and recorded once', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    const history = await world.history('a')
    world.clock.pass(1_000)
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied())
    assert.deepEqual(await world.history('a'), history)
  })

  test('a recorded outcome never changes: an entry that says something else is refused, not passed over', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    const history = await world.history('a')
    await assert.rejects(world.checkpoint('a', 't1', [outcome(0, { value: '"another"' }), outcome(1)]))
    await assert.rejects(world.checkpoint('a', 't1', [outcome(0, { name: 'other' })]))
    assert.deepEqual(await world.history('a'), history)
  })

  test('a resend that brings more than the first time adds what is new', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0), outcome(1)])
    await world.checkpoint('a', 't1', [outcome(1), outcome(2)])
    assert.deepEqual(
      (await world.history('a')).map(({ value }) => value),
      ['"value 0"', '"value 1"', '"value 2"'],
    )
  })
}

function fence(test: Test): void {
  test('without the live claim, nothing is recorded (D-23, D-35)', async (world) => {
    await world.start('held', 't1')
    await world.enqueue('enqueued')
    await world.start('settled', 't3')
    await world.settle('settled', 't3', SUCCEED)
    await world.start('released', 't4')
    await world.settle('released', 't4', RELEASE)
    for (const [id, token] of [
      ['held', 'another'],
      ['held', 'T1'],
      ['held', ''],
      ['enqueued', 't1'],
      ['settled', 't3'],
      ['released', 't4'],
      ['nowhere', 't1'],
    ] as const) {
      assert.deepEqual(await world.checkpoint(id, token, [outcome(0)]), CLAIM_LOST, `${id} under '${token}'`)
      assert.deepEqual(await world.history(id), [], `${id} under '${token}'`)
    }
  })

  test('a zombie whose claim was reclaimed records nothing, before and after the next claim', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(1)]), CLAIM_LOST)
    await world.claim(['t2'])
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(1)]), CLAIM_LOST)
    assert.deepEqual(await world.checkpoint('a', 't2', [outcome(1, { value: '"second"' })]), applied())
    assert.deepEqual(
      (await world.history('a')).map(({ value }) => value),
      ['"value 0"', '"second"'],
    )
  })

  test('a lease that has ended but was not reclaimed still holds', async (world) => {
    await world.start('a', 't1')
    world.clock.pass(LEASE_MS * 10)
    assert.deepEqual(await world.checkpoint('a', 't1', [outcome(0)]), applied())
    assert.equal((await world.history('a')).length, 1)
  })
}
