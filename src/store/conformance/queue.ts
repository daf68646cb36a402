/** The register of queues: knobs that hold for all processes, written by whoever is not older than what is there. */
import assert from 'node:assert/strict'
import type { QueueChange } from '../contract.ts'
import type { QueueKnobs, QueueRecord, Retention } from '../records.ts'
import { newQueue } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const RETENTION: Retention = { success: 1, error: 2_592_000_000, dead: null, cancelled: 0 }
const KNOBS: QueueKnobs = {
  globalConcurrency: 3,
  releaseWhileWaiting: true,
  rateLimit: { limit: 5, periodMs: 2 ** 40 },
  priorityEnabled: true,
  partitioned: true,
  retention: RETENTION,
}

export function queue(test: Test): void {
  registration(test)
  versions(test)
  changes(test)
}

function registration(test: Test): void {
  test('a queue is stored as it was registered, not paused, with the instant', async (world) => {
    assert.deepEqual(await world.store.queues(), [])
    world.clock.pass(777)
    const media = await world.register('media', { ...KNOBS, configVersion: 7 })
    const expected: QueueRecord = {
      ...KNOBS,
      name: 'media',
      configVersion: 7,
      paused: false,
      updatedAt: world.clock.now(),
    }
    assert.deepEqual(media, expected)
    assert.deepEqual(await world.store.queues(), [expected])
  })

  test('a queue without limits has none', async (world) => {
    assertHas(await world.register('plain'), {
      globalConcurrency: null,
      releaseWhileWaiting: false,
      rateLimit: null,
      priorityEnabled: false,
      partitioned: false,
      retention: null,
      configVersion: 0,
    })
  })

  test('several at once are answered in the order given, and listed by name', async (world) => {
    const given = ['c', 'a', 'd', 'b'].map((name, n) => newQueue(name, { globalConcurrency: n + 1 }))
    const answered = await world.store.registerQueues(given)
    assert.deepEqual(
      answered.map(({ name, globalConcurrency }) => [name, globalConcurrency]),
      [
        ['c', 1],
        ['a', 2],
        ['d', 3],
        ['b', 4],
      ],
    )
    assert.deepEqual(await names(world), ['a', 'b', 'c', 'd'])
    assert.deepEqual(await world.store.registerQueues([]), [])
  })

  test('names that differ in case or in blanks are different queues', async (world) => {
    const given = ['media', 'Media', 'media ', ' media', ''].map((name, n) =>
      newQueue(name, { globalConcurrency: n + 1 }),
    )
    await world.store.registerQueues(given)
    const found = new Map((await world.store.queues()).map((record) => [record.name, record.globalConcurrency]))
    assert.deepEqual(found, new Map(given.map(({ name, globalConcurrency }) => [name, globalConcurrency])))
  })
}

function versions(test: Test): void {
  test('an equal or a newer configVersion writes, and is answered', async (world) => {
    await world.register('media', { configVersion: 3, globalConcurrency: 1 })
    world.clock.pass(100)
    const again = await world.register('media', { configVersion: 3, globalConcurrency: 2 })
    assertHas(again, { configVersion: 3, globalConcurrency: 2, updatedAt: world.clock.now() })
    world.clock.pass(100)
    const newer = await world.register('media', { configVersion: 4, rateLimit: { limit: 1, periodMs: 5 } })
    assertHas(newer, { configVersion: 4, globalConcurrency: null, rateLimit: { limit: 1, periodMs: 5 } })
    assert.deepEqual(await world.store.queues(), [newer])
  })

  test('an older one writes nothing, and learns what holds (Q25)', async (world) => {
    const held = await world.register('media', { ...KNOBS, configVersion: 3 })
    world.clock.pass(100)
    const [other, media] = await world.store.registerQueues([
      newQueue('other'),
      newQueue('media', { configVersion: 2 }),
    ])
    assert.deepEqual(media, held)
    assert.equal(other?.name, 'other', 'a straggler still registers what is new')
    assert.deepEqual(await names(world), ['media', 'other'])
  })

  test('a queue that is paused stays paused when it is registered again', async (world) => {
    await world.register('media')
    await world.configure('media', { paused: true })
    assert.equal((await world.register('media', { configVersion: 1 })).paused, true)
    assert.equal((await world.store.queues())[0]?.paused, true)
  })
}

function changes(test: Test): void {
  test('a queue that is not registered is not changed', async (world) => {
    assert.equal(await world.store.changeQueue('nowhere', { paused: true }), undefined)
    assert.deepEqual(await world.store.queues(), [])
  })

  test('a change writes what it names, whatever the versions; the rest stays', async (world) => {
    const changes: readonly QueueChange[] = [
      { globalConcurrency: 9 },
      { globalConcurrency: null },
      { releaseWhileWaiting: true },
      { releaseWhileWaiting: false },
      { rateLimit: { limit: 2, periodMs: 1_000 } },
      { rateLimit: null },
      { priorityEnabled: true },
      { priorityEnabled: false },
      { partitioned: true },
      { partitioned: false },
      { retention: RETENTION },
      { retention: null },
      { paused: true },
      { paused: false },
      { configVersion: 11 },
      { configVersion: 1, globalConcurrency: 2, paused: true },
      {},
    ]
    let expected = await world.register('media', { globalConcurrency: 4, configVersion: 5 })
    const other = await world.register('other', KNOBS)
    for (const change of changes) {
      const { updatedAt: _, ...changed } = await world.configure('media', change)
      const { updatedAt: __, ...before } = expected
      assert.deepEqual(changed, { ...before, ...change }, JSON.stringify(change))
      const [media, untouched] = await world.store.queues()
      assert.ok(media !== undefined)
      assertHas(media, changed)
      assert.deepEqual(untouched, other)
      expected = media
    }
  })

  test('a change is dated', async (world) => {
    await world.register('media')
    world.clock.pass(1_000)
    assert.equal((await world.configure('media', { globalConcurrency: 1 })).updatedAt, world.clock.now())
  })

  test('whoever has raised the version by a change keeps older processes out', async (world) => {
    await world.register('media', { configVersion: 1, globalConcurrency: 1 })
    await world.configure('media', { configVersion: 2, globalConcurrency: 5 })
    assertHas(await world.register('media', { configVersion: 1, globalConcurrency: 1 }), {
      configVersion: 2,
      globalConcurrency: 5,
    })
  })
}

async function names(world: World): Promise<readonly string[]> {
  return (await world.store.queues()).map(({ name }) => name)
}
