/** Reads: what is asked for, in the order asked, and nothing that changes afterwards. */
import assert from 'node:assert/strict'
import type { ListRequest } from '../contract.ts'
import { DEFINITION, newRun, numbered, outcome, SUCCEED } from './makers.ts'
import type { Test, World } from './world.ts'

export function reads(test: Test): void {
  byId(test)
  lists(test)
}

function byId(test: Test): void {
  test('runs and inputs come in the order asked, undefined where there is none', async (world) => {
    await world.enqueue('a', 'b', 'c')
    const asked = ['c', 'nowhere', 'a', 'c']
    const runs = await world.store.runs(asked)
    assert.deepEqual(
      runs.map((run) => run?.id),
      ['c', undefined, 'a', 'c'],
    )
    assert.deepEqual(await world.store.inputs(asked), ['{"order":"c"}', undefined, '{"order":"a"}', '{"order":"c"}'])
    assert.deepEqual(await world.store.runs([]), [])
    assert.deepEqual(await world.store.inputs([]), [])
  })

  test('a thousand ids at once', async (world) => {
    const ids = numbered('run', 1_000)
    await world.enqueue(...ids)
    const asked = ids.toReversed()
    assert.deepEqual(
      (await world.store.runs(asked)).map((run) => run?.id),
      asked,
    )
    assert.equal((await world.store.inputs(asked))[0], '{"order":"run 999"}')
    assert.equal((await world.store.endings(asked)).size, 0)
    assert.equal((await world.store.histories(asked)).get('run 5')?.length ?? 0, 0)
  })

  test('endings of what has ended, missing for what does not exist, nothing for the rest', async (world) => {
    await world.enqueue('enqueued')
    await world.start('pending', 't1')
    await world.start('ended', 't2')
    await world.settle('ended', 't2', SUCCEED)
    const found = await world.store.endings(['enqueued', 'nowhere', 'pending', 'ended', 'ended'])
    assert.deepEqual(
      [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      [
        ['ended', { status: 'SUCCESS', output: '"done"' }],
        ['nowhere', 'missing'],
      ],
    )
    assert.equal((await world.store.endings([])).size, 0)
  })

  test('histories of several runs at once', async (world) => {
    await world.start('a', 't1')
    await world.start('b', 't2')
    await world.start('c', 't3')
    await world.checkpoint('a', 't1', [outcome(0), outcome(1)])
    await world.checkpoint('c', 't3', [outcome(0)])
    const found = await world.store.histories(['c', 'a', 'b', 'nowhere'])
    assert.deepEqual(
      ['a', 'b', 'c', 'nowhere'].map((id) => found.get(id)?.length ?? 0),
      [2, 0, 1, 0],
    )
  })

  test('what was given out stays as it was when the run goes on', async (world) => {
    await world.start('a', 't1')
    await world.checkpoint('a', 't1', [outcome(0)])
    const run = await world.run('a')
    const history = await world.history('a')
    const attempts = await world.store.attempts('a')
    await world.settle('a', 't1', SUCCEED, [outcome(1)])
    assert.equal(run.status, 'PENDING')
    assert.equal(history.length, 1)
    assert.equal(attempts[0]?.outcome, 'running')
  })

  test('what was given in is the store’s own: changing the caller’s object changes nothing', async (world) => {
    const entries = [outcome(0)]
    const runs = [newRun('a')]
    await world.commit({ type: 'enqueue', commandId: 'c1', runs })
    runs.push(newRun('b'))
    await world.claim(['t1'])
    await world.checkpoint('a', 't1', entries)
    entries.push(outcome(1))
    assert.equal((await world.history('a')).length, 1)
    assert.deepEqual(await world.store.runs(['b']), [undefined])
  })
}

function lists(test: Test): void {
  test('the newest first, at most as many as asked for', async (world) => {
    await world.enqueue('c', 'a', 'b')
    assert.deepEqual(await ids(world, { limit: 10 }), ['b', 'a', 'c'])
    assert.deepEqual(await ids(world, { limit: 2 }), ['b', 'a'])
  })

  test('page by page, each run once, whatever is accepted meanwhile', async (world) => {
    const names = numbered('run', 10)
    await world.enqueue(...names)
    const seen: string[] = []
    let beforeSeq: number | undefined
    for (let page = 0; ; page++) {
      const runs = await world.store.list({ limit: 3, ...(beforeSeq === undefined ? {} : { beforeSeq }) })
      if (runs.length === 0) break
      seen.push(...runs.map(({ id }) => id))
      beforeSeq = runs.at(-1)?.seq
      await world.enqueue(`accepted after page ${page}`)
    }
    assert.deepEqual(seen, names.toReversed())
  })

  test('by status, by definition, and by both', async (world) => {
    await world.enqueue('a', newRun('b', { definition: 'refund' }), 'c', newRun('d', { definition: 'refund' }))
    await world.cancel('a')
    await world.cancel('b')
    await world.claim(['t1'])
    assert.deepEqual(await ids(world, { limit: 10, status: ['CANCELLED'] }), ['b', 'a'])
    assert.deepEqual(await ids(world, { limit: 10, status: ['PENDING', 'ENQUEUED'] }), ['d', 'c'])
    assert.deepEqual(await ids(world, { limit: 10, definition: 'refund' }), ['d', 'b'])
    assert.deepEqual(await ids(world, { limit: 10, definition: 'refund', status: ['CANCELLED'] }), ['b'])
    assert.deepEqual(await ids(world, { limit: 10, definition: 'nothing' }), [])
    assert.deepEqual(await ids(world, { limit: 10, status: [] }), [])
    const { seq } = await world.run('d')
    assert.deepEqual(await ids(world, { limit: 10, definition: 'refund', beforeSeq: seq }), ['b'])
    assert.deepEqual(await ids(world, { limit: 1, status: ['CANCELLED'], beforeSeq: seq }), ['b'])
  })

  test('by queue, and by queue with the rest; runs of named queues are in the whole list too', async (world) => {
    await world.enqueue(
      newRun('a', { queue: 'media' }),
      'internal',
      newRun('b', { queue: 'media', definition: 'refund' }),
      newRun('c', { queue: 'mail' }),
      newRun('d', { queue: 'media' }),
    )
    await world.cancel('a')
    assert.deepEqual(await ids(world, { limit: 10 }), ['d', 'c', 'b', 'internal', 'a'])
    assert.deepEqual(await ids(world, { limit: 10, queue: 'media' }), ['d', 'b', 'a'])
    assert.deepEqual(await ids(world, { limit: 2, queue: 'media' }), ['d', 'b'])
    assert.deepEqual(await ids(world, { limit: 10, queue: 'media', status: ['ENQUEUED'] }), ['d', 'b'])
    assert.deepEqual(await ids(world, { limit: 10, queue: 'media', status: ['ENQUEUED', 'CANCELLED'] }), [
      'd',
      'b',
      'a',
    ])
    assert.deepEqual(await ids(world, { limit: 10, queue: 'media', definition: DEFINITION }), ['d', 'a'])
    const both = { queue: 'media', definition: DEFINITION, status: ['CANCELLED'] } as const
    assert.deepEqual(await ids(world, { limit: 10, ...both }), ['a'])
    const { seq } = await world.run('d')
    assert.deepEqual(await ids(world, { limit: 10, queue: 'media', beforeSeq: seq }), ['b', 'a'])
    assert.deepEqual(await ids(world, { limit: 10, queue: 'nowhere' }), [])
  })

  test('pages of a queue hold each run once', async (world) => {
    const names = numbered('run', 7)
    for (const name of names)
      await world.enqueue(newRun(name, { queue: 'media' }), newRun(`x ${name}`, { queue: 'mail' }))
    const seen: string[] = []
    for (let beforeSeq = Number.MAX_SAFE_INTEGER; ; ) {
      const runs = await world.store.list({ limit: 3, queue: 'media', beforeSeq })
      const last = runs.at(-1)
      if (last === undefined) break
      seen.push(...runs.map(({ id }) => id))
      beforeSeq = last.seq
    }
    assert.deepEqual(seen, names.toReversed())
  })
}

async function ids(world: World, request: ListRequest): Promise<readonly string[]> {
  return (await world.store.list(request)).map(({ id }) => id)
}
