/** Versions: the first engine with a version that claims a run binds it, and no other version goes on with it. */
import assert from 'node:assert/strict'
import { FAIL, LEASE_MS, newClaim, newRun, RELEASE, suspendUntil } from './makers.ts'
import { from, INTERNAL, runsOf } from './sources.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function version(test: Test): void {
  for (const [name, sources, queue] of [
    ['the internal queue', [INTERNAL], null],
    ['a named one', [from('media')], 'media'],
  ] as const) {
    test(`on ${name}, a claim with a version binds its runs; without one it binds none (Q23)`, async (world) => {
      await world.enqueue(newRun('a', { queue }), newRun('b', { queue }))
      await world.claim(['t1'], { sources, version: 'v1' })
      await world.claim(['t2'], { sources })
      assertHas(await world.run('a'), { version: 'v1' })
      assertHas(await world.run('b'), { version: null })
    })

    test(`on ${name}, a bound run goes to its version, or to an engine without one`, async (world) => {
      await world.enqueue(newRun('a', { queue }), newRun('b', { queue }))
      await world.claim(['t1', 't2'], { sources, version: 'v1' })
      for (const [id, token] of [
        ['a', 't1'],
        ['b', 't2'],
      ] as const) {
        await world.settle(id, token, RELEASE)
      }
      for (const other of ['v2', 'V1', 'v1 ', ''])
        assert.deepEqual(await world.claim(['t3'], { sources, version: other }), [])
      assert.deepEqual(await world.claimIds(['t4'], { sources, version: 'v1' }), ['a'])
      assert.deepEqual(await world.claimIds(['t5'], { sources }), ['b'])
      assertHas(await world.run('b'), { version: 'v1' })
    })

    test(`on ${name}, runs of other versions hold up nobody`, async (world) => {
      const ids = ['a', 'b', 'c', 'd', 'e']
      await world.enqueue(...ids.map((id) => newRun(id, { queue })))
      const bind = [
        ['a', 'v1'],
        ['b', 'v2'],
        ['c', 'v1'],
        ['d', null],
      ] as const
      for (const [n, [, bound]] of bind.entries()) await world.claim([`t${n}`], { sources, version: bound })
      for (const [n, [id]] of bind.entries()) await world.settle(id, `t${n}`, RELEASE)
      assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources, version: 'v2' }), ['b', 'd', 'e'])
      assertHas(await world.run('d'), { version: 'v2' })
      assert.deepEqual(await world.claimIds(['4', '5', '6'], { sources }), ['a', 'c'], 'in one order')
    })

    test(`on ${name}, a suspended run resumes with its version`, async (world) => {
      await world.enqueue(newRun('a', { queue }))
      await world.claim(['t1'], { sources, version: 'v1' })
      await world.settle('a', 't1', suspendUntil(world.clock.now() + 100))
      world.clock.pass(100)
      assert.deepEqual(await world.claim(['t2'], { sources, version: 'v2' }), [])
      assert.deepEqual(await world.claimIds(['t3'], { sources, version: 'v1' }), ['a'])
    })
  }

  test('a direct start binds as well', async (world) => {
    await world.start('a', 't1', { claim: newClaim('t1', { version: 'v1' }) })
    assertHas(await world.run('a'), { version: 'v1' })
    await world.settle('a', 't1', RELEASE)
    assert.deepEqual(await world.claim(['t2'], { version: 'v2' }), [])
    assert.deepEqual(await world.claimIds(['t3'], { version: 'v1' }), ['a'])
  })

  test('crash and requeue keep the version', async (world) => {
    await world.enqueue('a')
    await world.claim(['t1'], { version: 'v1' })
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    assert.deepEqual(await world.claim(['t2'], { version: 'v2' }), [])
    await world.claim(['t3'], { version: 'v1' })
    await world.settle('a', 't3', FAIL)
    await world.requeue('a')
    assertHas(await world.run('a'), { version: 'v1', epoch: 1 })
    assert.deepEqual(await world.claim(['t4'], { version: 'v2' }), [])
    assert.deepEqual(await world.claimIds(['t5'], { version: 'v1' }), ['a'])
  })

  test('in every lane the version holds', async (world) => {
    await world.register('media', { partitioned: true })
    await world.enqueue(
      ...['eu', 'us'].flatMap((key) => runsOf('media', [`${key} 1`, `${key} 2`], { partitionKey: key })),
    )
    const sources = [from('media')]
    await world.claim(['t1', 't2'], { sources, version: 'v1' })
    await world.settle('eu 1', 't1', RELEASE)
    await world.settle('us 1', 't2', RELEASE)
    assert.deepEqual((await world.claimIds(['1', '2', '3'], { sources, version: 'v2' })).toSorted(), ['eu 2', 'us 2'])
    assert.deepEqual((await world.claimIds(['4', '5'], { sources, version: 'v1' })).toSorted(), ['eu 1', 'us 1'])
  })
}
