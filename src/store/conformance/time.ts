/** Time: every instant is the store's clock's, read when the command is applied. */
import assert from 'node:assert/strict'
import { LEASE_MS, newRun, outcome, SUCCEED, suspendUntil } from './makers.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

export function time(test: Test): void {
  test('a run’s life is dated by the clock of the store', async (world) => {
    const at: number[] = []
    const tick = (): void => {
      world.clock.pass(1_111)
      at.push(world.clock.now())
    }
    tick()
    await world.enqueue('a')
    tick()
    await world.claim(['t1'])
    tick()
    await world.checkpoint('a', 't1', [outcome(0)])
    tick()
    await world.settle('a', 't1', SUCCEED, [outcome(1)])
    const [created, claimed, recorded, settled] = at
    assert.ok(created !== undefined && claimed !== undefined && recorded !== undefined && settled !== undefined)
    assertHas(await world.run('a'), { createdAt: created, startedAt: claimed, endedAt: settled })
    assert.deepEqual(
      (await world.history('a')).map(({ recordedAt }) => recordedAt),
      [recorded, settled],
    )
  })

  test('all commands of a batch happen at one instant', async (world) => {
    await world.commitAll([
      { type: 'enqueue', commandId: 'c1', runs: [newRun('a'), newRun('b')] },
      { type: 'enqueue', commandId: 'c2', runs: [newRun('c')] },
    ])
    for (const id of ['a', 'b', 'c']) assert.equal((await world.run(id)).createdAt, world.clock.now())
  })

  test('nothing happens by itself when time passes: lease, timer and deadline wait to be served', async (world) => {
    await world.start('leased', 't1', { timeoutMs: 1_000 })
    await world.start('timer', 't2')
    await world.settle('timer', 't2', suspendUntil(world.clock.now() + 1_000))
    const before = [await world.everythingOf('leased'), await world.everythingOf('timer')]
    world.clock.pass(365 * 24 * 3_600_000)
    assert.deepEqual([await world.everythingOf('leased'), await world.everythingOf('timer')], before)
  })

  test('a year of leases, renewed in time, is never reclaimed', async (world) => {
    await world.start('a', 't1')
    for (let n = 0; n < 50; n++) {
      world.clock.pass(LEASE_MS - 1)
      await world.store.renew([{ runId: 'a', token: 't1' }], LEASE_MS)
      assert.deepEqual(await world.reclaim(), [])
    }
    assert.equal((await world.run('a')).token, 't1')
  })

  test('instants far away keep every millisecond', async (world) => {
    await world.start('a', 't1')
    const wakeAt = Number.MAX_SAFE_INTEGER
    await world.settle('a', 't1', suspendUntil(wakeAt))
    assert.equal((await world.run('a')).dueAt, wakeAt)
    assert.equal(await world.nextAt(), wakeAt)
  })
}
