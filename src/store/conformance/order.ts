/** Order: first in, first out by a total order, and everyone who comes back keeps their place (P8). */
import assert from 'node:assert/strict'
import { LEASE_MS, newRun, RELEASE, suspendUntil } from './makers.ts'
import type { Test, World } from './world.ts'

export function order(test: Test): void {
  test('runs are claimed in order of acceptance, not of their ids', async (world) => {
    const ids = ['m', 'z', 'a', 'k', 'b', '10', '9']
    for (const id of ids) await world.enqueue(id)
    assert.deepEqual(await oneByOne(world), ids)
  })

  test('one claim for many gives them in the same order', async (world) => {
    const ids = ['m', 'z', 'a', 'k', 'b']
    await world.enqueue(...ids)
    assert.deepEqual(await world.claimIds(['t1', 't2', 't3']), ['m', 'z', 'a'])
    assert.deepEqual(await world.claimIds(['t4', 't5', 't6']), ['k', 'b'])
  })

  test('the order is one across definitions', async (world) => {
    await world.enqueue(
      newRun('a', { definition: 'y' }),
      newRun('b', { definition: 'x' }),
      newRun('c', { definition: 'y' }),
    )
    assert.deepEqual(await world.claimIds(['t1', 't2', 't3'], { definitions: ['x', 'y'] }), ['a', 'b', 'c'])
  })

  test('suspended runs that are due come first, by their due instant', async (world) => {
    const now = world.clock.now()
    for (const [id, wakeAt] of [
      ['late', now + 300],
      ['soon', now + 100],
      ['next', now + 200],
    ] as const) {
      await world.start(id, id)
      await world.settle(id, id, suspendUntil(wakeAt))
    }
    await world.enqueue('new')
    world.clock.pass(200)
    assert.deepEqual(await oneByOne(world), ['soon', 'next', 'new'])
  })

  test('suspended runs that are due at the same instant go by their place', async (world) => {
    const wakeAt = world.clock.now() + 100
    await world.start('b', 'tb')
    await world.start('a', 'ta')
    await world.settle('a', 'ta', suspendUntil(wakeAt))
    await world.settle('b', 'tb', suspendUntil(wakeAt))
    world.clock.pass(100)
    assert.deepEqual(await world.claimIds(['t1', 't2']), ['b', 'a'])
  })

  test('suspended before new holds within one claim, and across definitions', async (world) => {
    await world.enqueue(newRun('new', { definition: 'x' }))
    await world.start('resumed', 't1', { definition: 'y' })
    await world.settle('resumed', 't1', suspendUntil(world.clock.now()))
    assert.deepEqual(await world.claimIds(['t2', 't3'], { definitions: ['x', 'y'] }), ['resumed', 'new'])
  })

  test('a released run keeps its place', async (world) => {
    await world.enqueue('a', 'b', 'c')
    await world.claim(['t1', 't2'])
    await world.settle('b', 't2', RELEASE)
    await world.settle('a', 't1', RELEASE)
    assert.deepEqual(await oneByOne(world), ['a', 'b', 'c'])
  })

  test('a reclaimed run keeps its place', async (world) => {
    await world.enqueue('a', 'b', 'c')
    await world.claim(['t1', 't2'])
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await oneByOne(world), ['a', 'b', 'c'])
  })

  test('a requeued run keeps its place', async (world) => {
    await world.enqueue('a', 'b', 'c')
    await world.cancel('b')
    await world.cancel('a')
    await world.requeue('b')
    await world.requeue('a')
    assert.deepEqual(await oneByOne(world), ['a', 'b', 'c'])
  })

  test('a resend of a start takes no new place', async (world) => {
    const start = { type: 'enqueue', commandId: 'c1', runs: [newRun('a')] } as const
    await world.commit(start)
    await world.enqueue('b')
    await world.commit(start)
    assert.deepEqual(await oneByOne(world), ['a', 'b'])
  })
}

/** Claims until nothing is left, one at a time. */
async function oneByOne(world: World): Promise<readonly string[]> {
  const ids: string[] = []
  for (let turn = 0; ; turn++) {
    const [id] = await world.claimIds([`turn ${turn}`])
    if (id === undefined) return ids
    ids.push(id)
  }
}
