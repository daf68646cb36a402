/** Starts by name: what a definition says of its runs is filled in by the first claim that knows it. */
import assert from 'node:assert/strict'
import type { NewRun } from '../contract.ts'
import { FAIL, newRun, RELEASE } from './makers.ts'
import { claimable, from } from './sources.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

const JOB = claimable('resize', { kind: 'job', maxRecoveries: 3, timeoutMs: 60_000 })

export function byName(test: Test): void {
  function named(id: string, run: Partial<NewRun> = {}): NewRun {
    return newRun(id, { definition: 'resize', kind: null, maxRecoveries: 50, timeoutMs: null, ...run })
  }

  test('until it is claimed, its kind is not known', async (world) => {
    await world.enqueue(named('a'))
    assertHas(await world.run('a'), { definition: 'resize', kind: null, maxRecoveries: 50, timeoutMs: null })
  })

  test('the first claim gives it kind, recoveries, time-out and deadline', async (world) => {
    await world.enqueue(named('a'), named('b', { queue: 'media' }))
    world.clock.pass(500)
    for (const [id, fields] of [
      ['a', {}],
      ['b', { sources: [from('media')] }],
    ] as const) {
      const [claimed] = await world.claim([id], { definitions: ['charge', JOB], ...fields })
      const deadlineAt = world.clock.now() + 60_000
      assert.ok(claimed !== undefined)
      assertHas(claimed.run, { id, kind: 'job', maxRecoveries: 3, timeoutMs: 60_000, deadlineAt })
      assert.deepEqual(await world.run(id), claimed.run)
    }
  })

  test('a time-out that was given with the start is kept', async (world) => {
    await world.enqueue(named('a', { timeoutMs: 5_000 }))
    await world.claim(['t1'], { definitions: [JOB] })
    assertHas(await world.run('a'), { kind: 'job', timeoutMs: 5_000, deadlineAt: world.clock.now() + 5_000 })
  })

  test('later claims change nothing, whatever their definition says by then', async (world) => {
    await world.enqueue(named('a'))
    await world.claim(['t1'], { definitions: [JOB] })
    await world.settle('a', 't1', RELEASE)
    const other = claimable('resize', { kind: 'stepRunner', maxRecoveries: 9, timeoutMs: 1 })
    await world.claim(['t2'], { definitions: [other] })
    assertHas(await world.run('a'), { kind: 'job', maxRecoveries: 3, timeoutMs: 60_000 })
    await world.settle('a', 't2', FAIL)
    await world.requeue('a')
    await world.claim(['t3'], { definitions: [other] })
    assertHas(await world.run('a'), { kind: 'job', maxRecoveries: 3, deadlineAt: world.clock.now() + 60_000 })
  })

  test('a run that was started with its definition keeps what that said', async (world) => {
    await world.enqueue(newRun('a', { definition: 'resize', kind: 'workflow', maxRecoveries: 7 }))
    await world.claim(['t1'], { definitions: [JOB] })
    assertHas(await world.run('a'), { kind: 'workflow', maxRecoveries: 7, timeoutMs: null, deadlineAt: null })
  })

  test('the crashes of a run by name are counted against what its definition says', async (world) => {
    await world.enqueue(named('a'))
    const definitions = [claimable('resize', { maxRecoveries: 0 })]
    await world.claim(['t1'], { definitions })
    await world.reclaim(['worker-1'])
    assert.equal((await world.run('a')).status, 'DEAD')
  })

  test('the same run with its definition known is the same run', async (world) => {
    await world.enqueue(named('a'))
    const answer = await world.enqueue(newRun('a', { definition: 'resize', kind: 'job' }))
    assert.equal(answer.type, 'accepted')
    assert.equal((await world.run('a')).kind, null)
  })

  test('it is cancelled and requeued before anyone has claimed it', async (world) => {
    await world.enqueue(named('a'))
    await world.cancel('a')
    await world.requeue('a')
    assertHas(await world.run('a'), { kind: null, status: 'ENQUEUED' })
    assert.equal((await world.claim(['t1'], { definitions: [JOB] })).length, 1)
    assert.equal((await world.run('a')).kind, 'job')
  })
}
