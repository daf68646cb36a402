/** Accepting runs: all of a command or none, and an id that exists is the run that exists. */
import assert from 'node:assert/strict'
import { accepted, DEFINITION, newClaim, newRun, SUCCEED } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function enqueue(test: Test): void {
  accepting(test)
  existing(test)
}

function accepting(test: Test): void {
  test('an accepted run is ENQUEUED, with all it was given and nothing of a claim', async (world) => {
    const limits = { maxRecoveries: 7, timeoutMs: 90_000 }
    const place = { queue: 'media', priority: -3, partitionKey: 'eu', dedup: { id: 'd', policy: 'reject' } } as const
    const run = newRun('a', { kind: 'job', inputHash: 'abc', parentId: 'parent', ...limits, ...place })
    const commandId = world.commandId()
    assert.deepEqual(await world.commit({ type: 'enqueue', commandId, runs: [run] }), accepted('a'))
    const { seq, ...row } = await world.run('a')
    assert.ok(Number.isSafeInteger(seq))
    assert.deepEqual(row, {
      id: 'a',
      definition: DEFINITION,
      kind: 'job',
      queue: 'media',
      priority: -3,
      partitionKey: 'eu',
      lane: '',
      rank: 0,
      dedupId: 'd',
      status: 'ENQUEUED',
      inputHash: 'abc',
      dueAt: null,
      token: null,
      owner: null,
      leaseUntil: null,
      epoch: 0,
      version: null,
      parentId: 'parent',
      deliveries: 0,
      attempt: 0,
      crashes: 0,
      maxRecoveries: 7,
      timeoutMs: 90_000,
      deadlineAt: null,
      cancelRequested: false,
      createdAt: world.clock.now(),
      startedAt: null,
      endedAt: null,
      failureKind: null,
      startId: commandId,
      operationId: null,
    })
    assert.deepEqual(await world.store.inputs(['a']), ['{"order":"a"}'])
    assert.equal(await world.ending('a'), undefined)
    assert.deepEqual(await world.history('a'), [])
  })

  test('every kind of definition, and a named queue, are kept', async (world) => {
    await world.enqueue(
      newRun('w', { kind: 'workflow' }),
      newRun('j', { kind: 'job', queue: 'media' }),
      newRun('s', { kind: 'stepRunner', queue: ' ' }),
    )
    assertHas(await world.run('w'), { kind: 'workflow', queue: null })
    assertHas(await world.run('j'), { kind: 'job', queue: 'media' })
    assertHas(await world.run('s'), { kind: 'stepRunner', queue: ' ' })
  })

  test('seq grows in the order of acceptance, within a command, a batch and beyond', async (world) => {
    await world.enqueue('z', 'y')
    await world.commitAll([
      { type: 'enqueue', commandId: 'c1', runs: [newRun('x')] },
      { type: 'enqueue', commandId: 'c2', runs: [newRun('w'), newRun('v')] },
    ])
    await world.enqueue('u')
    const runs = await world.store.runs(['z', 'y', 'x', 'w', 'v', 'u'])
    const seqs = runs.map((run) => run?.seq ?? Number.NaN)
    assert.deepEqual(
      seqs,
      seqs.toSorted((a, b) => a - b),
    )
    assert.equal(new Set(seqs).size, seqs.length)
  })

  test('no runs is accepted as well', async (world) => {
    assert.deepEqual(await world.enqueue(), accepted())
  })

  test('ids that differ in case or in trailing blanks are different runs', async (world) => {
    await world.enqueue('a', 'A', 'a ', ' a')
    const runs = await world.store.runs(['a', 'A', 'a ', ' a'])
    assert.deepEqual(
      runs.map((run) => run?.id),
      ['a', 'A', 'a ', ' a'],
    )
    assert.equal(new Set(runs.map((run) => run?.seq)).size, 4)
  })
}

function existing(test: Test): void {
  test('a run that exists, with the same definition and input, is answered and left alone', async (world) => {
    await world.start('a', 't1')
    await world.settle('a', 't1', SUCCEED)
    const before = await world.everythingOf('a')
    world.clock.pass(1_000)
    assert.deepEqual(
      await world.enqueue(newRun('a', { claim: newClaim('t2'), maxRecoveries: 1, timeoutMs: 5, queue: 'other' }), 'b'),
      accepted({ id: 'a', created: false, status: 'SUCCESS' }, 'b'),
    )
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('another definition is a mismatch, and nothing of the command is stored', async (world) => {
    await world.enqueue('a')
    const before = await world.everythingOf('a')
    const answer = await world.enqueue('b', newRun('a', { definition: 'refund' }), 'c')
    assert.deepEqual(answer, { type: 'mismatch', id: 'a', definition: DEFINITION })
    assert.deepEqual(await world.store.runs(['b', 'c']), [undefined, undefined])
    assert.deepEqual(await world.store.inputs(['b', 'c']), [undefined, undefined])
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('another input is a mismatch, and nothing of the command is stored', async (world) => {
    await world.enqueue('a')
    const answer = await world.enqueue('b', newRun('a', { inputHash: 'another' }))
    assert.deepEqual(answer, { type: 'mismatch', id: 'a', definition: DEFINITION })
    assert.deepEqual(await world.store.runs(['b']), [undefined])
    assert.deepEqual(await world.claimIds(['t1', 't2']), ['a'])
  })

  test('equal inputs are told by their hash, not their text', async (world) => {
    await world.enqueue(newRun('a', { input: '{"x":1,"y":2}', inputHash: 'same' }))
    const answer = await world.enqueue(newRun('a', { input: '{"y":2,"x":1}', inputHash: 'same' }))
    assert.deepEqual(answer, accepted({ id: 'a', created: false }))
    assert.deepEqual(await world.store.inputs(['a']), ['{"x":1,"y":2}'])
  })

  test('one command that names a run twice creates it once (C-23)', async (world) => {
    assert.deepEqual(await world.enqueue('a', 'b', 'a'), accepted('a', 'b', { id: 'a', created: false }))
    assert.equal((await world.store.list({ limit: 10 })).length, 2)
  })

  test('one command that names a run twice with different inputs is a mismatch', async (world) => {
    const answer = await world.enqueue('a', newRun('a', { inputHash: 'another' }))
    assert.deepEqual(answer, { type: 'mismatch', id: 'a', definition: DEFINITION })
    assert.deepEqual(await world.store.runs(['a']), [undefined])
  })
}
