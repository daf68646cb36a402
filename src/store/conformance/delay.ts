/** Delays: DELAYED until due by the store's clock, then claimable at the place that was taken at the start. */
import assert from 'node:assert/strict'
import type { NewDue, NewRun } from '../contract.ts'
import { accepted, newRun, numbered } from './makers.ts'
import { from, INTERNAL, runsOf } from './sources.ts'
import type { Test } from './world.ts'
import { assertHas } from './world.ts'

const MEDIA = [from('media')]
const DAY_MS = 24 * 3_600_000

export function delay(test: Test): void {
  starts(test)
  promotion(test)
  operations(test)
}

function delayed(id: string, ms: number, run: Partial<NewRun> = {}): NewRun {
  return newRun(id, { queue: 'media', due: { type: 'after', ms }, ...run })
}

function starts(test: Test): void {
  test('a run that is due later is DELAYED until then, by the clock of the store', async (world) => {
    const now = world.clock.now()
    const at: NewDue = { type: 'at', instant: now + 5_000 }
    assert.deepEqual(
      await world.enqueue(delayed('after', 3_000), delayed('at', 0, { due: at })),
      accepted({ id: 'after', status: 'DELAYED' }, { id: 'at', status: 'DELAYED' }),
    )
    assertHas(await world.run('after'), { status: 'DELAYED', dueAt: now + 3_000, attempt: 0, createdAt: now })
    assertHas(await world.run('at'), { status: 'DELAYED', dueAt: now + 5_000 })
  })

  test('one whose instant is past, or now, is ENQUEUED at once (Q26)', async (world) => {
    const now = world.clock.now()
    const dues: readonly NewDue[] = [
      { type: 'after', ms: 0 },
      { type: 'at', instant: now },
      { type: 'at', instant: now - DAY_MS },
      { type: 'at', instant: 0 },
    ]
    for (const [n, due] of dues.entries()) {
      const id = `run ${n}`
      assert.deepEqual(await world.enqueue(newRun(id, { queue: 'media', due })), accepted(id))
      assertHas(await world.run(id), { status: 'ENQUEUED', dueAt: null })
    }
    assert.equal((await world.claim(['1', '2', '3', '4'], { sources: MEDIA })).length, 4)
  })

  test('it is claimable at its instant, not a millisecond earlier, and the claim is its first', async (world) => {
    await world.enqueue(delayed('a', 1_000, { timeoutMs: 60_000 }))
    world.clock.pass(999)
    assert.deepEqual(await world.claim(['t1'], { sources: MEDIA }), [])
    assert.equal((await world.run('a')).status, 'DELAYED')
    world.clock.pass(1)
    const [claimed] = await world.claim(['t2'], { sources: MEDIA })
    assert.ok(claimed !== undefined)
    const now = world.clock.now()
    assertHas(claimed.run, {
      status: 'PENDING',
      dueAt: null,
      attempt: 1,
      deliveries: 1,
      startedAt: now,
      deadlineAt: now + 60_000,
    })
    assert.deepEqual(await world.run('a'), claimed.run)
  })

  test('a delay of more than 24.8 days is kept to the millisecond (B-01, B-16)', async (world) => {
    await world.enqueue(delayed('a', 2 ** 31 + 1))
    const dueAt = world.clock.now() + 2 ** 31 + 1
    assert.equal(await world.nextAt({ sources: MEDIA }), dueAt)
    world.clock.pass(2 ** 31)
    assert.equal(await world.nextAt({ sources: MEDIA }), dueAt)
    world.clock.pass(1)
    assert.deepEqual(await world.claimIds(['t1'], { sources: MEDIA }), ['a'])
  })

  test('a start that is resent later is as late as it was', async (world) => {
    const start = { type: 'enqueue', commandId: 'c1', runs: [delayed('a', 1_000)] } as const
    const first = await world.commit(start)
    const before = await world.run('a')
    world.clock.pass(500)
    assert.deepEqual(await world.commit(start), first)
    assert.deepEqual(await world.run('a'), before)
  })
}

function promotion(test: Test): void {
  test('a run that comes due goes to the place that its start took, before all that came after it', async (world) => {
    await world.enqueue(
      delayed('first', 1_000),
      newRun('second', { queue: 'media' }),
      delayed('third', 500),
      newRun('fourth', { queue: 'media' }),
    )
    world.clock.pass(1_000)
    await world.enqueue(newRun('fifth', { queue: 'media' }))
    const tokens = ['1', '2', '3', '4', '5', '6']
    assert.deepEqual(await world.claimIds(tokens.slice(0, 2), { sources: MEDIA }), ['first', 'second'])
    assert.deepEqual(await world.claimIds(tokens.slice(2), { sources: MEDIA }), ['third', 'fourth', 'fifth'])
  })

  test('with its priority, where that is heeded (Q16)', async (world) => {
    await world.register('media', { priorityEnabled: true })
    await world.enqueue(
      newRun('early', { queue: 'media', priority: 5 }),
      delayed('urgent', 100, { priority: 1 }),
      delayed('late', 100, { priority: 9 }),
    )
    world.clock.pass(100)
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources: MEDIA }), ['urgent', 'early', 'late'])
  })

  test('to its lane', async (world) => {
    await world.register('media', { partitioned: true, globalConcurrency: 1 })
    await world.enqueue(
      ...runsOf('media', ['eu 1'], { partitionKey: 'eu' }),
      delayed('eu 2', 100, { partitionKey: 'eu' }),
      delayed('us 1', 100, { partitionKey: 'us' }),
      delayed('us 2', 100, { partitionKey: 'us' }),
    )
    assert.deepEqual(await world.claimIds(['1', '2'], { sources: MEDIA }), ['eu 1'])
    world.clock.pass(100)
    assert.deepEqual(await world.claimIds(['3', '4'], { sources: MEDIA }), ['us 1'])
  })

  test('many that come due at one instant are all there, in order (C-13)', async (world) => {
    const ids = numbered('run', 300)
    await world.enqueue(...ids.map((id, n) => delayed(id, 1_000 + (n % 7))))
    world.clock.pass(1_006)
    const claimed: string[] = []
    for (let n = 0; n < 300; n += 50) {
      const tokens = Array.from({ length: 50 }, (_, k) => `t ${n + k}`)
      claimed.push(...(await world.claimIds(tokens, { sources: MEDIA })))
    }
    assert.deepEqual(claimed, ids)
  })

  test('on the internal queue as well', async (world) => {
    await world.enqueue(newRun('a', { due: { type: 'after', ms: 100 } }))
    assert.equal(await world.nextAt(), world.clock.now() + 100)
    world.clock.pass(100)
    assert.deepEqual(await world.claimIds(['t1'], { sources: [...MEDIA, INTERNAL] }), ['a'])
  })

  test('a due run of a definition that is not named stays for those who know it', async (world) => {
    await world.enqueue(delayed('a', 100, { definition: 'unknown here' }))
    world.clock.pass(100)
    assert.deepEqual(await world.claim(['t1'], { sources: MEDIA }), [])
    assert.deepEqual(await world.claimIds(['t2'], { sources: MEDIA, definitions: ['unknown here'] }), ['a'])
  })
}

function operations(test: Test): void {
  test('a DELAYED run is cancelled at once, and never comes due', async (world) => {
    await world.enqueue(delayed('a', 100))
    assert.deepEqual(await world.cancel('a'), { type: 'cancelled', rippled: false })
    assertHas(await world.run('a'), { status: 'CANCELLED', dueAt: null })
    assert.equal(await world.nextAt({ sources: MEDIA }), null)
    world.clock.pass(100)
    assert.deepEqual(await world.claim(['t1'], { sources: MEDIA }), [])
  })

  test('a requeue skips what was left of the delay (Q27)', async (world) => {
    await world.enqueue(delayed('a', DAY_MS))
    await world.cancel('a')
    await world.requeue('a')
    assertHas(await world.run('a'), { status: 'ENQUEUED', dueAt: null })
    assert.deepEqual(await world.claimIds(['t1'], { sources: MEDIA }), ['a'])
  })

  test('a DELAYED run is not requeued', async (world) => {
    await world.enqueue(delayed('a', 100))
    const before = await world.everythingOf('a')
    assert.deepEqual(await world.requeue('a'), { type: 'notRequeued', status: 'DELAYED', holder: null })
    assert.deepEqual(await world.everythingOf('a'), before)
  })

  test('a clock that is set back reorders nothing (Q8)', async (world) => {
    await world.enqueue(...runsOf('media', ['a']))
    world.clock.pass(-3_600_000)
    await world.enqueue(...runsOf('media', ['b']), delayed('c', 100))
    world.clock.pass(-3_600_000)
    await world.enqueue(...runsOf('media', ['d']))
    world.clock.pass(3_600_000 + 100)
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4', '5'], { sources: MEDIA }), ['a', 'b', 'c', 'd'])
  })
}
