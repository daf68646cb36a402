/** Suspension until another run ends: no end is missed, whenever it comes. */
import assert from 'node:assert/strict'
import type { AwaitedRun } from '../contract.ts'
import { applied, FAIL, LEASE_MS, newRun, outcome, SUCCEED, suspendUntil } from './makers.ts'
import { from } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

export function children(test: Test): void {
  already(test)
  later(test)
  records(test)
  batches(test)
}

function on(runId: string, position = 0): AwaitedRun {
  return { position, runId }
}

/** Suspends the run for others, and answers when it is due. */
async function suspend(world: World, id: string, token: string, ...awaited: readonly AwaitedRun[]) {
  const answer = await world.settle(id, token, suspendUntil(null, ...awaited))
  assert.ok(answer.type === 'applied' && answer.status === 'WAITING')
  assert.equal((await world.run(id)).dueAt, answer.dueAt)
  return answer.dueAt
}

function already(test: Test): void {
  const ends: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    SUCCESS: (world) => world.settle('child', 'c', SUCCEED),
    ERROR: (world) => world.settle('child', 'c', FAIL),
    DEAD: (world) => world.settle('child', 'c', { type: 'dead', failure: { kind: 'permanent', error: null } }),
    CANCELLED: (world) => world.settle('child', 'c', { type: 'cancel', failure: { kind: 'cancelled', error: null } }),
  }
  for (const [status, apply] of Object.entries(ends)) {
    test(`a run that is ${status} already makes its waiter due at once (D-31)`, async (world) => {
      await world.start('parent', 'p')
      await world.start('child', 'c')
      await apply(world)
      assert.equal((await world.run('child')).status, status)
      world.clock.pass(100)
      assert.equal(await suspend(world, 'parent', 'p', on('child')), world.clock.now())
      assert.deepEqual(await world.claimIds(['p2']), ['parent'])
    })
  }

  test('one that does not exist counts as ended', async (world) => {
    await world.start('parent', 'p')
    assert.equal(await suspend(world, 'parent', 'p', on('nowhere')), world.clock.now())
    assert.deepEqual(await world.claimIds(['p2']), ['parent'])
  })

  test('one of several is enough', async (world) => {
    await world.start('parent', 'p')
    await world.start('a', 'ta')
    await world.start('b', 'tb')
    await world.settle('b', 'tb', SUCCEED)
    assert.equal(await suspend(world, 'parent', 'p', on('a', 0), on('b', 1)), world.clock.now())
  })

  test('without children or waits nothing but time makes it due', async (world) => {
    await world.start('parent', 'p')
    await world.start('child', 'c', { parentId: 'parent' })
    assert.equal(await suspend(world, 'parent', 'p'), null)
    await world.settle('child', 'c', SUCCEED)
    assert.equal((await world.run('parent')).dueAt, null, 'nobody said that it waits for that')
  })
}

function later(test: Test): void {
  const ends: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    'its success': (world) => world.settle('child', 'c', SUCCEED),
    'its error': (world) => world.settle('child', 'c', FAIL),
    'its cancellation while it waits': async (world) => {
      await world.settle('child', 'c', suspendUntil(null))
      await world.cancel('child')
    },
    'its cancellation that was asked for': async (world) => {
      await world.cancel('child')
      assert.equal((await world.run('parent')).dueAt, null, 'asked is not ended')
      await world.settle('child', 'c', SUCCEED)
    },
    'one crash too many': async (world) => {
      world.clock.pass(LEASE_MS)
      const { rippled } = await world.store.reclaim({ deadOwners: [], limit: 10 })
      assert.equal(rippled, true)
    },
    'the cancellation of its own parent': async (world) => {
      await world.settle('child', 'c', suspendUntil(null))
      await world.cancel('another parent')
    },
  }
  for (const [end, apply] of Object.entries(ends)) {
    test(`a run that waits for another is woken by ${end}`, async (world) => {
      await world.enqueue('another parent')
      await world.start('parent', 'p')
      await world.start('child', 'c', { maxRecoveries: 0, parentId: 'another parent' })
      assert.equal(await suspend(world, 'parent', 'p', on('child')), null)
      world.clock.pass(100)
      await apply(world)
      assertHas(await world.run('parent'), { status: 'WAITING', dueAt: world.clock.now() })
      assert.ok((await world.claimIds(['p2', 'p3'])).includes('parent'))
    })
  }

  test('the settlement that ends it tells that another run was changed', async (world) => {
    await world.start('parent', 'p')
    await world.start('child', 'c')
    await world.start('lonely', 'l')
    await suspend(world, 'parent', 'p', on('child'))
    const ending = { status: 'SUCCESS', output: '"done"' } as const
    assert.deepEqual(await world.settle('child', 'c', SUCCEED), applied({ status: 'SUCCESS', ending, rippled: true }))
    assert.deepEqual(await world.settle('lonely', 'l', SUCCEED), applied({ status: 'SUCCESS', ending }))
  })

  test('a hand-back, a suspension and a crash that is not the last wake nobody', async (world) => {
    await world.start('parent', 'p')
    await world.start('child', 'c')
    await suspend(world, 'parent', 'p', on('child'))
    await world.settle('child', 'c', suspendUntil(0))
    await world.claim(['c2'])
    await world.settle('child', 'c2', { type: 'release' })
    await world.claim(['c3'])
    world.clock.pass(LEASE_MS)
    assert.equal((await world.store.reclaim({ deadOwners: [], limit: 10 })).rippled, false)
    assertHas(await world.run('parent'), { status: 'WAITING', dueAt: null })
  })

  test('a timer that is earlier is kept, and one that is later gives way', async (world) => {
    await world.start('parent', 'p')
    await world.start('child', 'c')
    const wakeAt = world.clock.now() + 60_000
    await world.settle('parent', 'p', suspendUntil(wakeAt, on('child')))
    assert.equal((await world.run('parent')).dueAt, wakeAt)
    world.clock.pass(1_000)
    await world.settle('child', 'c', SUCCEED)
    assert.equal((await world.run('parent')).dueAt, world.clock.now())
  })

  test('it is woken once: by the first of several, and not again by the others', async (world) => {
    await world.start('parent', 'p')
    for (const id of ['a', 'b', 'c']) await world.start(id, id)
    await suspend(world, 'parent', 'p', on('a', 0), on('b', 1), on('c', 2))
    await world.settle('b', 'b', SUCCEED)
    const woken = world.clock.now()
    world.clock.pass(100)
    await world.settle('a', 'a', SUCCEED)
    assert.equal((await world.run('parent')).dueAt, woken, 'due already')
    assert.deepEqual(await world.claimIds(['p2']), ['parent'])
    const before = await world.run('parent')
    await world.settle('c', 'c', SUCCEED)
    assert.deepEqual(await world.run('parent'), before, 'it is PENDING, and nobody waits for c any more')
    const answer = await world.settle('parent', 'p2', suspendUntil(null))
    assert.ok(answer.type === 'applied' && answer.dueAt === null)
  })

  test('several runs that wait for one are all woken', async (world) => {
    for (const id of ['p1', 'p2', 'p3']) await world.start(id, id)
    await world.start('child', 'c')
    for (const id of ['p1', 'p2', 'p3']) await suspend(world, id, id, on('child'))
    await world.settle('child', 'c', SUCCEED)
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4']), ['p1', 'p2', 'p3'])
  })

  test('a run in a queue is woken to its place there, whatever queue the other was in', async (world) => {
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(newRun('parent', { queue: 'media' }), newRun('next', { queue: 'media' }))
    await world.enqueue(newRun('child', { queue: 'mail' }))
    const sources = [from('media'), from('mail')]
    await world.claim(['p', 'c'], { sources })
    await suspend(world, 'parent', 'p', on('child'))
    assert.deepEqual(await world.claim(['x'], { sources }), [])
    await world.settle('child', 'c', SUCCEED)
    assert.deepEqual(await world.claimIds(['y', 'z'], { sources }), ['parent'])
  })

  test('one position may wait for two runs, and two positions for one', async (world) => {
    await world.start('parent', 'p')
    await world.start('a', 'ta')
    await world.start('b', 'tb')
    await suspend(world, 'parent', 'p', on('a', 4), on('b', 4), on('b', 5))
    await world.settle('b', 'tb', SUCCEED)
    assert.deepEqual(await world.claimIds(['p2']), ['parent'])
  })
}

function records(test: Test): void {
  const child = (position: number, childId: string) => ({ type: 'child', runId: 'parent', position, childId }) as const

  test('what a suspended run waits for can be asked, until it goes on', async (world) => {
    await world.start('parent', 'p')
    await world.start('a', 'ta')
    await world.start('b', 'tb')
    await world.wait('parent', 'p', { position: 2 })
    await suspend(world, 'parent', 'p', on('a', 0), on('b', 1))
    const signal = { type: 'signal', runId: 'parent', position: 2, key: 'approval', state: 'open', payload: null }
    assert.deepEqual(
      (await world.waits('parent')).toSorted((a, b) => a.position - b.position),
      [child(0, 'a'), child(1, 'b'), signal],
    )
    await world.settle('a', 'ta', SUCCEED)
    await world.claim(['p2'])
    assert.deepEqual(await world.waits('parent'), [signal])
    await suspend(world, 'parent', 'p2', on('b', 1))
    assert.equal((await world.waits('parent')).length, 2)
  })

  test('the end of the waiter takes its waits along', async (world) => {
    await world.start('parent', 'p')
    await world.start('a', 'ta')
    await suspend(world, 'parent', 'p', on('a', 0))
    await world.cancel('parent')
    assert.deepEqual(await world.waits('parent'), [])
    const before = await world.everythingOf('parent')
    const ending = { status: 'SUCCESS', output: '"done"' } as const
    assert.deepEqual(await world.settle('a', 'ta', SUCCEED), applied({ status: 'SUCCESS', ending }))
    assert.deepEqual(await world.everythingOf('parent'), before)
  })

  test('a settlement that was outweighed by a cancellation waits for nobody', async (world) => {
    await world.start('parent', 'p')
    await world.start('a', 'ta')
    await world.cancel('parent')
    await world.settle('parent', 'p', suspendUntil(null, on('a')))
    assert.equal((await world.run('parent')).status, 'CANCELLED')
    assert.deepEqual(await world.waits('parent'), [])
  })

  test('a suspension that is resent waits as it did', async (world) => {
    await world.start('parent', 'p')
    await world.start('a', 'ta')
    const first = await world.settle('parent', 'p', suspendUntil(null, on('a')), [outcome(0)])
    assert.deepEqual(await world.settle('parent', 'p', suspendUntil(null, on('a')), [outcome(0)]), first)
    assert.equal((await world.waits('parent')).length, 1)
    await world.settle('a', 'ta', SUCCEED)
    const woken = await world.run('parent')
    world.clock.pass(100)
    await world.settle('parent', 'p', suspendUntil(null, on('a')), [outcome(0)])
    assert.deepEqual(await world.run('parent'), woken)
  })

  test('a requeued child is a run like any other: its next end is one to wait for', async (world) => {
    await world.start('child', 'c')
    await world.settle('child', 'c', FAIL)
    await world.requeue('child')
    await world.claim(['c2'])
    await world.start('parent', 'p')
    assert.equal(await suspend(world, 'parent', 'p', on('child')), null)
    await world.settle('child', 'c2', SUCCEED)
    assert.deepEqual(await world.claimIds(['p2']), ['parent'])
  })
}

function batches(test: Test): void {
  test('the suspension and the end it waits for in one batch: it is due, whichever comes first', async (world) => {
    for (const order of ['end first', 'suspension first']) {
      const [parent, child] = [`parent, ${order}`, `child, ${order}`]
      await world.start(parent, parent)
      await world.start(child, child)
      const end = { type: 'settle', runId: child, token: child, entries: [], settlement: SUCCEED } as const
      const settlement = suspendUntil(null, on(child))
      const wait = { type: 'settle', runId: parent, token: parent, entries: [], settlement } as const
      await world.commitAll(order === 'end first' ? [end, wait] : [wait, end])
      assertHas(await world.run(parent), { status: 'WAITING', dueAt: world.clock.now() })
      assert.deepEqual(await world.claimIds([`${order} again`]), [parent])
    }
  })
}
