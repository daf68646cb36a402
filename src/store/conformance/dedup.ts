/** Deduplication: at most one run that has not ended holds an id in a queue, and its end frees the id at once. */
import assert from 'node:assert/strict'
import type { EnqueueOutcome, NewDedup, NewRun } from '../contract.ts'
import { accepted, FAIL, LEASE_MS, newRun, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const MEDIA = { sources: [from('media')] }

export function dedup(test: Test): void {
  holding(test)
  scope(test)
  withinOneCommand(test)
  freeing(test)
  resends(test)
  requeues(test)
}

function run(id: string, policy: NewDedup['policy'] = 'reject', fields: Partial<NewRun> = {}): NewRun {
  return newRun(id, { queue: 'media', dedup: { id: 'order-1', policy }, ...fields })
}

function held(id: string, holder: string, fields: Partial<Extract<EnqueueOutcome, { dedupId: string }>> = {}) {
  return { type: 'deduplicated', id, queue: 'media', dedupId: 'order-1', holder, ...fields } as const
}

function holding(test: Test): void {
  test("'reject': while a run holds the id, another is refused, and nothing of its command is stored (Q29)", async (world) => {
    assert.deepEqual(await world.enqueue(run('a')), accepted('a'))
    assert.equal((await world.run('a')).dedupId, 'order-1')
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.enqueue('with it', run('b'), 'and it'), held('b', 'a'))
    assert.deepEqual(await world.store.runs(['b', 'with it', 'and it']), [undefined, undefined, undefined])
    assert.deepEqual(await world.store.inputs(['b']), [undefined])
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test("'returnExisting': the holder is answered, whatever its definition and input (Q31)", async (world) => {
    await world.enqueue(run('a'))
    const other = run('b', 'returnExisting', { definition: 'refund', inputHash: 'another', input: '2' })
    assert.deepEqual(await world.enqueue('with it', other), accepted('with it', { id: 'a', created: false }))
    assert.deepEqual(await world.store.runs(['b']), [undefined])
    assert.deepEqual(await world.store.inputs(['b']), [undefined])
    await world.claim(['t1'], MEDIA)
    assert.deepEqual(await world.enqueue(other), accepted({ id: 'a', created: false, status: 'PENDING' }))
  })

  test('the id of a run is looked at first: the holder itself is answered under both policies', async (world) => {
    await world.enqueue(run('a'))
    for (const policy of ['reject', 'returnExisting'] as const) {
      assert.deepEqual(await world.enqueue(run('a', policy)), accepted({ id: 'a', created: false }))
    }
    const mismatch = { type: 'mismatch', id: 'a', definition: 'charge' }
    assert.deepEqual(await world.enqueue(run('a', 'returnExisting', { inputHash: 'another' })), mismatch)
  })

  test('a run that exists under its id is answered, though another holds the deduplication id', async (world) => {
    await world.enqueue(newRun('b', { queue: 'media' }), run('a'))
    assert.deepEqual(await world.enqueue(run('b')), accepted({ id: 'b', created: false }))
    assert.equal((await world.run('b')).dedupId, null)
  })

  test('a run holds its id in every status that is not an end', async (world) => {
    const refused = () => world.enqueue(run('b'))
    await world.enqueue(run('a', 'reject', { due: { type: 'after', ms: 1_000 } }))
    assert.deepEqual(await refused(), held('b', 'a'), 'DELAYED')
    world.clock.pass(1_000)
    await world.claim(['t1'], MEDIA)
    assert.deepEqual(await refused(), held('b', 'a'), 'PENDING')
    await world.settle('a', 't1', suspendUntil(null))
    assert.deepEqual(await refused(), held('b', 'a'), 'WAITING')
    await world.commit({ type: 'signal', commandId: 's', key: 'none of it', payload: '1' })
    assert.deepEqual(await refused(), held('b', 'a'))
  })
}

function scope(test: Test): void {
  test('the id counts in its queue only, and exactly as it is written', async (world) => {
    const at = (queue: string, id: string) => newRun(`${queue} ${id}`, { queue, dedup: { id, policy: 'reject' } })
    const all = [
      at('media', 'x'),
      at('mail', 'x'),
      at('Media', 'x'),
      at('media', 'X'),
      at('media', 'x '),
      at('media', ''),
    ]
    assert.deepEqual(await world.enqueue(...all), accepted(...all.map(({ id }) => id)))
    assert.deepEqual(await world.enqueue(newRun('again', { queue: 'media', dedup: { id: '', policy: 'reject' } })), {
      type: 'deduplicated',
      id: 'again',
      queue: 'media',
      dedupId: '',
      holder: 'media ',
    })
  })

  test('across lanes, priorities and definitions of the queue it is one', async (world) => {
    await world.register('media', { partitioned: true, priorityEnabled: true })
    await world.enqueue(run('a', 'reject', { partitionKey: 'eu', priority: 1 }))
    assert.deepEqual(
      await world.enqueue(run('b', 'reject', { partitionKey: 'us', definition: 'refund' })),
      held('b', 'a'),
    )
  })
}

function withinOneCommand(test: Test): void {
  test("the first of an id stands for the later ones: 'returnExisting'", async (world) => {
    assert.deepEqual(
      await world.enqueue(run('a'), run('b', 'returnExisting'), run('c', 'returnExisting'), 'd'),
      accepted('a', { id: 'a', created: false }, { id: 'a', created: false }, 'd'),
    )
    assert.deepEqual(
      (await world.store.list({ limit: 10 })).map(({ id }) => id),
      ['d', 'a'],
    )
  })

  test("the first of an id stands for the later ones: 'reject'", async (world) => {
    assert.deepEqual(await world.enqueue(run('a'), 'x', run('b')), held('b', 'a'))
    assert.deepEqual(await world.store.list({ limit: 10 }), [])
    assert.deepEqual(await world.enqueue(run('c')), accepted('c'), 'and the id is free')
  })

  test('a run that is named again with an id is the run that was named first, and holds none', async (world) => {
    assert.deepEqual(
      await world.enqueue('a', run('a'), run('b', 'returnExisting')),
      accepted('a', { id: 'a', created: false }, 'b'),
    )
    assertHas(await world.run('a'), { queue: null, dedupId: null })
    assert.deepEqual(await world.enqueue(run('c')), held('c', 'b'))
  })

  test('two commands of a batch that ask for one id: the first has it', async (world) => {
    const outcomes = await world.commitAll([
      { type: 'enqueue', commandId: 'c1', runs: [run('a')] },
      { type: 'enqueue', commandId: 'c2', runs: [run('b')] },
      { type: 'enqueue', commandId: 'c3', runs: [run('c', 'returnExisting')] },
    ])
    assert.deepEqual(outcomes, [accepted('a'), held('b', 'a'), accepted({ id: 'a', created: false })])
  })
}

function freeing(test: Test): void {
  const crash = async (world: World): Promise<void> => {
    world.clock.pass(LEASE_MS)
    await world.reclaim()
  }
  const ends: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    'its success': (world) => world.settle('a', 't1', SUCCEED),
    'its error': (world) => world.settle('a', 't1', FAIL),
    'its death': (world) => world.settle('a', 't1', { type: 'dead', failure: { kind: 'permanent', error: null } }),
    'its own cancellation': (world) =>
      world.settle('a', 't1', { type: 'cancel', failure: { kind: 'timeout', error: null } }),
    'one crash too many': crash,
    'a cancellation that was asked for, and its settlement': async (world) => {
      await world.cancel('a')
      assert.deepEqual(await world.enqueue(run('b')), held('b', 'a'), 'asked is not ended')
      await world.settle('a', 't1', RELEASE)
    },
    'a cancellation that was asked for, and a crash': async (world) => {
      await world.cancel('a')
      await crash(world)
    },
    'a cancellation while it waits': async (world) => {
      await world.settle('a', 't1', suspendUntil(null))
      await world.cancel('a')
    },
    'the cancellation of its parent': async (world) => {
      await world.settle('a', 't1', suspendUntil(null))
      await world.cancel('parent')
    },
  }
  for (const [end, apply] of Object.entries(ends)) {
    test(`the id is free with ${end} (Q30, C-17)`, async (world) => {
      await world.enqueue('parent')
      await world.enqueue(run('a', 'reject', { maxRecoveries: 0, parentId: 'parent' }))
      await world.claim(['t1'], MEDIA)
      assert.deepEqual(await world.enqueue(run('b')), held('b', 'a'))
      await apply(world)
      assert.deepEqual(await world.enqueue(run('b')), accepted('b'))
      assert.deepEqual(await world.enqueue(run('c', 'returnExisting')), accepted({ id: 'b', created: false }))
    })
  }

  test('a hand-back, a crash that is not the last and a resume free nothing', async (world) => {
    await world.enqueue(run('a'))
    await world.claim(['t1'], MEDIA)
    await world.settle('a', 't1', RELEASE)
    assert.deepEqual(await world.enqueue(run('b')), held('b', 'a'))
    await world.claim(['t2'], MEDIA)
    await crash(world)
    assert.deepEqual(await world.enqueue(run('b')), held('b', 'a'))
    await world.claim(['t3'], MEDIA)
    await world.settle('a', 't3', suspendUntil(0))
    await world.claim(['t4'], MEDIA)
    assert.deepEqual(await world.enqueue(run('b')), held('b', 'a'))
  })

  test('an actor that comes late frees nothing of a newer holder (Q30)', async (world) => {
    await world.enqueue(run('a', 'reject', { maxRecoveries: 0 }))
    await world.claim(['t1'], MEDIA)
    await crash(world)
    await world.enqueue(run('b'))
    await world.settle('a', 't1', SUCCEED)
    await world.cancel('a')
    await world.checkpoint('a', 't1', [outcome(0)])
    await world.reclaim(['worker-1'])
    assert.deepEqual(await world.enqueue(run('c')), held('c', 'b'))
  })

  test('it is free in the commit that ends the holder, for the next command of the batch', async (world) => {
    await world.enqueue(run('a'))
    await world.claim(['t1'], MEDIA)
    const outcomes = await world.commitAll([
      { type: 'settle', runId: 'a', token: 't1', entries: [], settlement: SUCCEED },
      { type: 'enqueue', commandId: 'c1', runs: [run('b')] },
    ])
    assert.deepEqual(outcomes[1], accepted('b'))
  })
}

function resends(test: Test): void {
  test('a start that is resent is the holder, and answers as it did, also when another has the id now', async (world) => {
    const start = { type: 'enqueue', commandId: 'c1', runs: [run('a')] } as const
    const first = await world.commit(start)
    assert.deepEqual(await world.commit(start), first)
    await world.cancel('a')
    await world.enqueue(run('b'))
    assert.deepEqual(await world.commit(start), accepted({ id: 'a', status: 'CANCELLED' }))
    assert.equal((await world.store.list({ limit: 10 })).length, 2)
  })

  test('a refusal that is resent is one again', async (world) => {
    await world.enqueue(run('a'))
    const start = { type: 'enqueue', commandId: 'c1', runs: ['x', 'y'].map((id) => run(id)) } as const
    assert.deepEqual(await world.commit(start), held('x', 'a'))
    assert.deepEqual(await world.commit(start), held('x', 'a'))
  })

  test('runs that stood for others in a command do so in its resend, also when they have ended', async (world) => {
    const start = { type: 'enqueue', commandId: 'c1', runs: [run('a'), run('b', 'returnExisting')] } as const
    assert.deepEqual(await world.commit(start), accepted('a', { id: 'a', created: false }))
    await world.cancel('a')
    const status = 'CANCELLED'
    assert.deepEqual(await world.commit(start), accepted({ id: 'a', status }, { id: 'a', created: false, status }))
    assert.deepEqual(await world.store.runs(['b']), [undefined])
  })
}

function requeues(test: Test): void {
  test('a requeued run holds its id again', async (world) => {
    await world.enqueue(run('a'))
    await world.cancel('a')
    await world.requeue('a')
    assertHas(await world.run('a'), { status: 'ENQUEUED', dedupId: 'order-1' })
    assert.deepEqual(await world.enqueue(run('b')), held('b', 'a'))
  })

  test('while another run holds its id, a run is not requeued', async (world) => {
    await world.enqueue(run('a'))
    await world.claim(['t1'], MEDIA)
    await world.settle('a', 't1', FAIL)
    await world.enqueue(run('b'))
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.requeue('a'), {
      type: 'notRequeued',
      status: 'ERROR',
      holder: { queue: 'media', dedupId: 'order-1', holder: 'b' },
    })
    assert.deepEqual(await world.everythingOf('a'), before)
    await world.cancel('b')
    assert.deepEqual(await world.requeue('a'), { type: 'requeued' })
    assert.deepEqual(await world.requeue('b'), {
      type: 'notRequeued',
      status: 'CANCELLED',
      holder: { queue: 'media', dedupId: 'order-1', holder: 'a' },
    })
  })

  test('a requeue that is resent was the one that requeued, whoever holds the id by then', async (world) => {
    await world.enqueue(run('a'))
    await world.cancel('a')
    await world.requeue('a', 'r1')
    await world.claim(['t1'], MEDIA)
    await world.settle('a', 't1', FAIL)
    await world.enqueue(run('b'))
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.requeue('a', 'r1'), { type: 'requeued' })
    assert.deepEqual(await world.everythingOf('a'), before)
    assert.equal((await world.requeue('a', 'r2')).type, 'notRequeued')
  })
}
