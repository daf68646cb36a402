/** A run that ends CANCELLED takes its attached children along, in the same commit, and theirs. */
import assert from 'node:assert/strict'
import type { Ending, RunStatus } from '../records.ts'
import { applied, FAIL, LEASE_MS, newRun, OWNER, SUCCEED, suspendUntil } from './makers.ts'
import { from } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const CANCELLED: Ending = { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } }

export function cascade(test: Test): void {
  atOnce(test)
  asked(test)
  who(test)
  batches(test)
}

async function statuses(world: World, ...ids: readonly string[]): Promise<readonly (RunStatus | undefined)[]> {
  return (await world.store.runs(ids)).map((run) => run?.status)
}

function atOnce(test: Test): void {
  test('children that are not PENDING are CANCELLED with it, with all that an end brings', async (world) => {
    await world.enqueue('parent')
    await world.enqueue(
      newRun('enqueued', { parentId: 'parent' }),
      newRun('delayed', { parentId: 'parent', queue: 'media', due: { type: 'after', ms: 1_000 } }),
      newRun('in a queue', { parentId: 'parent', queue: 'media' }),
    )
    await world.start('waiting', 't1', { parentId: 'parent' })
    await world.settle('waiting', 't1', suspendUntil(world.clock.now() + 1_000))
    world.clock.pass(10)
    assert.deepEqual(await world.cancel('parent', 'c1'), { type: 'cancelled', rippled: true })
    for (const id of ['enqueued', 'delayed', 'in a queue', 'waiting']) {
      assertHas(await world.run(id), {
        status: 'CANCELLED',
        failureKind: 'cancelled',
        endedAt: world.clock.now(),
        dueAt: null,
        operationId: null,
      })
      assert.deepEqual(await world.ending(id), CANCELLED)
    }
    world.clock.pass(5_000)
    assert.deepEqual(await world.claim(['1', '2'], { sources: [from('media'), { ...from(''), queue: null }] }), [])
  })

  test('down through the generations', async (world) => {
    await world.enqueue(
      '1',
      newRun('2', { parentId: '1' }),
      newRun('3', { parentId: '2' }),
      newRun('4', { parentId: '3' }),
    )
    await world.enqueue(newRun('another 3', { parentId: '2' }), newRun('aunt', { parentId: '1' }))
    await world.cancel('2')
    assert.deepEqual(await statuses(world, '1', '2', '3', '4', 'another 3', 'aunt'), [
      'ENQUEUED',
      'CANCELLED',
      'CANCELLED',
      'CANCELLED',
      'CANCELLED',
      'ENQUEUED',
    ])
  })

  test('hundreds of children, and a chain of hundreds', async (world) => {
    const many = Array.from({ length: 500 }, (_, n) => newRun(`child ${n}`, { parentId: 'parent' }))
    const chain = Array.from({ length: 500 }, (_, n) =>
      newRun(`link ${n}`, { parentId: n === 0 ? 'parent' : `link ${n - 1}` }),
    )
    await world.enqueue('parent', ...many, ...chain)
    await world.cancel('parent')
    assert.equal((await world.store.list({ limit: 2_000, status: ['CANCELLED'] })).length, 1_001)
  })

  test('a cancellation that is resent cancels nobody else', async (world) => {
    await world.enqueue('parent', newRun('child', { parentId: 'parent' }))
    await world.cancel('parent', 'c1')
    await world.requeue('child')
    assert.equal((await world.cancel('parent', 'c1')).type, 'cancelled')
    assert.deepEqual(await statuses(world, 'child'), ['ENQUEUED'])
  })
}

function asked(test: Test): void {
  test('a PENDING child is asked, and takes its own along when it ends', async (world) => {
    await world.enqueue('parent')
    await world.start('child', 't1', { parentId: 'parent' })
    await world.enqueue(newRun('grandchild', { parentId: 'child' }))
    assert.deepEqual(await world.cancel('parent'), { type: 'cancelled', rippled: true })
    assertHas(await world.run('child'), { status: 'PENDING', cancelRequested: true, token: 't1', operationId: null })
    assert.deepEqual(await world.store.cancelRequests(OWNER), [{ runId: 'child', token: 't1' }])
    assert.deepEqual(await statuses(world, 'grandchild'), ['ENQUEUED'])
    assert.deepEqual(
      await world.settle('child', 't1', SUCCEED),
      applied({ status: 'CANCELLED', ending: CANCELLED, rippled: true }),
    )
    assert.deepEqual(await statuses(world, 'grandchild'), ['CANCELLED'])
  })

  test('a PENDING parent that is asked takes nobody along until it ends', async (world) => {
    await world.start('parent', 't1')
    await world.enqueue(newRun('child', { parentId: 'parent' }))
    await world.cancel('parent')
    assert.deepEqual(await statuses(world, 'child'), ['ENQUEUED'])
    await world.settle('parent', 't1', FAIL)
    assert.deepEqual(await statuses(world, 'parent', 'child'), ['CANCELLED', 'CANCELLED'])
  })

  test('a crash after the request takes the children along', async (world) => {
    await world.start('parent', 't1')
    await world.enqueue(newRun('child', { parentId: 'parent' }))
    await world.cancel('parent')
    world.clock.pass(LEASE_MS)
    const { runs, rippled } = await world.store.reclaim({ deadOwners: [], limit: 10 })
    assert.deepEqual([runs.map(({ status }) => status), rippled], [['CANCELLED'], true])
    assert.deepEqual(await statuses(world, 'child'), ['CANCELLED'])
  })

  test('the settlement of a run that gives itself up takes them along as well', async (world) => {
    await world.start('parent', 't1')
    await world.enqueue(newRun('child', { parentId: 'parent' }))
    const failure = { kind: 'timeout', error: null } as const
    const answer = await world.settle('parent', 't1', { type: 'cancel', failure })
    assert.deepEqual(answer, applied({ status: 'CANCELLED', ending: { status: 'CANCELLED', failure }, rippled: true }))
    assert.deepEqual(await world.ending('child'), CANCELLED)
  })

  test('a child that was asked already is not asked again', async (world) => {
    await world.enqueue('parent')
    await world.start('child', 't1', { parentId: 'parent' })
    await world.cancel('child', 'c1')
    const before = await world.run('child')
    assert.deepEqual(await world.cancel('parent'), { type: 'cancelled', rippled: false })
    assert.deepEqual(await world.run('child'), before)
  })
}

function who(test: Test): void {
  test('detached runs, those of other parents and those that have ended are left alone', async (world) => {
    await world.enqueue('parent', 'other')
    await world.enqueue('detached', newRun('of another', { parentId: 'other' }))
    await world.start('ended', 't1', { parentId: 'parent' })
    await world.settle('ended', 't1', SUCCEED)
    const ids = ['detached', 'of another', 'ended']
    const before = await Promise.all(ids.map((id) => world.everythingOf(id)))
    assert.deepEqual(await world.cancel('parent'), { type: 'cancelled', rippled: false })
    assert.deepEqual(await Promise.all(ids.map((id) => world.everythingOf(id))), before)
  })

  for (const [name, settlement] of [
    ['SUCCESS', SUCCEED],
    ['ERROR', FAIL],
    ['DEAD', { type: 'dead', failure: { kind: 'permanent', error: null } }],
  ] as const) {
    test(`the children of a run that ends ${name} go on`, async (world) => {
      await world.start('parent', 't1')
      await world.enqueue(newRun('child', { parentId: 'parent' }))
      const answer = await world.settle('parent', 't1', settlement)
      assert.ok(answer.type === 'applied')
      assertHas(answer, { status: name, rippled: false })
      assert.deepEqual(await statuses(world, 'child'), ['ENQUEUED'])
    })
  }

  test('a child whose parent is gone or unknown is a run like any other', async (world) => {
    await world.enqueue(newRun('child', { parentId: 'nowhere' }))
    assert.deepEqual(await world.claimIds(['t1']), ['child'])
    await world.settle('child', 't1', FAIL)
    assert.deepEqual(await world.requeue('child'), { type: 'requeued' })
  })

  test('a child that is requeued is not cancelled by what cancelled it before, but by the next', async (world) => {
    await world.enqueue('parent', newRun('child', { parentId: 'parent' }))
    await world.cancel('parent')
    await world.requeue('child')
    assert.deepEqual(await world.claimIds(['t1']), ['child'])
    await world.settle('child', 't1', { type: 'release' })
    await world.requeue('parent')
    await world.cancel('parent')
    assert.deepEqual(await statuses(world, 'child'), ['CANCELLED'])
  })

  test('what was done to a child before still recognises itself', async (world) => {
    await world.enqueue('parent', newRun('child', { parentId: 'parent' }))
    await world.cancel('child')
    await world.requeue('child', 'r1')
    await world.cancel('parent')
    const before = await world.everythingOf('child')
    assert.deepEqual(await world.requeue('child', 'r1'), { type: 'requeued' })
    assert.deepEqual(await world.everythingOf('child'), before)
    assert.deepEqual(await statuses(world, 'child'), ['CANCELLED'])
  })

  test('turns in queues that children held are free', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(
      'parent',
      newRun('child', { parentId: 'parent', queue: 'media' }),
      newRun('next', { queue: 'media' }),
    )
    const media = { sources: [from('media')] }
    await world.claim(['t1'], media)
    await world.settle('child', 't1', suspendUntil(null))
    assert.deepEqual(await world.claim(['t2'], media), [])
    await world.cancel('parent')
    assert.deepEqual(await world.claimIds(['t3'], media), ['next'])
  })
}

function batches(test: Test): void {
  test('the parent’s cancellation and the child’s settlement in one batch: what is answered is what is stored', async (world) => {
    for (const order of ['parent first', 'child first']) {
      const [parent, child] = [`parent, ${order}`, `child, ${order}`]
      await world.enqueue(parent)
      await world.start(child, child, { parentId: parent })
      const cancel = { type: 'cancel', commandId: order, runId: parent } as const
      const settle = { type: 'settle', runId: child, token: child, entries: [], settlement: SUCCEED } as const
      const outcomes = await world.commitAll(order === 'parent first' ? [cancel, settle] : [settle, cancel])
      const settled = outcomes.find((answer) => answer.type === 'applied')
      assert.ok(settled?.type === 'applied', 'the claim was held')
      assert.equal(settled.status, (await world.run(child)).status)
      assert.deepEqual(await world.ending(child), settled.ending)
      assert.deepEqual(await statuses(world, parent), ['CANCELLED'])
    }
  })
}
