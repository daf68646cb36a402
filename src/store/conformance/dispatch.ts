/** Dispatching: one claim serves several sources, each within its room, and a paused queue is left alone. */
import assert from 'node:assert/strict'
import { FAIL, LEASE_MS, newRun, numbered, outcome, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { from, INTERNAL, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'
import { assertHas } from './world.ts'

const MEDIA = [from('media')]

export function dispatch(test: Test): void {
  sources(test)
  room(test)
  turns(test)
  priorities(test)
  paused(test)
  resends(test)
}

function sources(test: Test): void {
  test('a run is claimed from its queue, and from no other', async (world) => {
    await world.enqueue(...runsOf('media', ['m']), ...runsOf('mail', ['n']), ...runsOf(' ', ['nameless']), 'internal')
    assert.deepEqual(await world.claim(['t'], { sources: [] }), [])
    assert.deepEqual(await world.claim(['t'], { sources: [from('Media'), from('medi'), from('media ')] }), [])
    assert.deepEqual(await world.claimIds(['t1', 't2'], { sources: MEDIA }), ['m'])
    assert.deepEqual(await world.claimIds(['t3', 't4'], { sources: [from(' ')] }), ['nameless'])
    assert.deepEqual(await world.claimIds(['t5', 't6']), ['internal'])
    assert.equal((await world.run('n')).status, 'ENQUEUED')
  })

  test('a queue that nobody registered is served, without limits', async (world) => {
    const ids = numbered('run', 50)
    await world.enqueue(...runsOf('media', ids, { partitionKey: 'eu', priority: 1 }))
    assert.deepEqual(
      await world.claimIds(
        ids.map((id) => `t ${id}`),
        { sources: MEDIA },
      ),
      ids,
    )
  })

  test('each source gives its own lease', async (world) => {
    await world.enqueue(...runsOf('media', ['m']), ...runsOf('mail', ['n']), 'internal')
    await world.claim(['t1', 't2', 't3'], {
      sources: [from('media', { leaseMs: 500 }), from('mail', { leaseMs: 700 }), { ...INTERNAL, leaseMs: 900 }],
    })
    const now = world.clock.now()
    const leases = (await world.store.runs(['m', 'n', 'internal'])).map((run) => run?.leaseUntil)
    assert.deepEqual(leases, [now + 500, now + 700, now + 900])
  })

  test('runs of definitions that are not named hold up nobody (D-20)', async (world) => {
    await world.register('media', { priorityEnabled: true })
    const unknown = { definition: 'unknown here', priority: -1 }
    await world.enqueue(...runsOf('media', ['x', 'y', 'z'], unknown), ...runsOf('media', ['a']))
    assert.deepEqual(await world.claimIds(['t1', 't2'], { sources: MEDIA }), ['a'])
    assert.deepEqual(await world.claim(['t3'], { sources: MEDIA, definitions: [] }), [])
  })

  test('a claimed run has its input with it, and is the row that is stored', async (world) => {
    await world.register('media', { partitioned: true, priorityEnabled: true })
    await world.enqueue(...runsOf('media', ['a'], { partitionKey: 'eu', priority: 3, input: '"a"' }))
    const [claimed] = await world.claim(['t1'], { sources: MEDIA })
    assert.equal(claimed?.input, '"a"')
    assert.deepEqual(claimed.run, await world.run('a'))
    assertHas(claimed.run, { queue: 'media', lane: 'eu', rank: 3, attempt: 1, deliveries: 1 })
  })
}

function room(test: Test): void {
  test('at most as many of a source as it has room for, and of all as there are tokens', async (world) => {
    await world.enqueue(...runsOf('media', ['m1', 'm2', 'm3']), ...runsOf('mail', ['n1', 'n2', 'n3']))
    const tokens = (name: string) => [1, 2, 3, 4, 5].map((n) => `${name} ${n}`)
    const none = [from('media', { room: 0 }), from('mail', { room: 0 })]
    assert.deepEqual(await world.claim(tokens('none'), { sources: none }), [])
    const narrow = [from('media', { room: 1 }), from('mail', { room: 2 })]
    assert.deepEqual((await world.claimIds(tokens('narrow'), { sources: narrow })).toSorted(), ['m1', 'n1', 'n2'])
    const wide = [from('media', { room: 5 }), from('mail', { room: 5 })]
    assert.deepEqual((await world.claimIds(['w1', 'w2'], { sources: wide })).length, 2)
    assert.equal((await world.claimIds(tokens('rest'), { sources: wide })).length, 1)
  })

  test('a resume needs room as well', async (world) => {
    await world.enqueue(...runsOf('media', ['a']))
    await world.claim(['t1'], { sources: MEDIA })
    await world.settle('a', 't1', suspendUntil(world.clock.now()))
    assert.deepEqual(await world.claim(['t2'], { sources: [from('media', { room: 0 })] }), [])
    assert.deepEqual(await world.claimIds(['t3'], { sources: [from('media', { room: 1 })] }), ['a'])
  })

  test('resumes take the room of new runs', async (world) => {
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.claim(['t1'], { sources: MEDIA })
    await world.settle('a', 't1', suspendUntil(world.clock.now()))
    assert.deepEqual(await world.claimIds(['t2', 't3'], { sources: [from('media', { room: 1 })] }), ['a'])
  })

  test('a source without room hinders no other', async (world) => {
    await world.enqueue(...runsOf('media', ['m1', 'm2']), ...runsOf('mail', ['n1', 'n2']), 'i1')
    const sources = [from('media', { room: 0 }), from('mail', { room: 1 }), INTERNAL]
    assert.deepEqual(await world.claimIds(['t1', 't2', 't3', 't4'], { sources }), ['n1', 'i1'])
  })
}

function turns(test: Test): void {
  test('one of each source in turn, in the order of the request', async (world) => {
    await world.enqueue(...runsOf('media', ['m1', 'm2', 'm3']), 'i1', 'i2', ...runsOf('mail', ['n1']))
    const sources = [from('mail'), from('media'), INTERNAL]
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4', '5', '6', '7'], { sources }), [
      ...['n1', 'm1', 'i1'],
      ...['m2', 'i2'],
      'm3',
    ])
  })

  test('with too few tokens for all, each source gets its share', async (world) => {
    await world.enqueue(...runsOf('media', ['m1', 'm2', 'm3']), ...runsOf('mail', ['n1', 'n2', 'n3']))
    const sources = [from('media'), from('mail')]
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4'], { sources }), ['m1', 'n1', 'm2', 'n2'])
  })

  test('suspended runs that are due come first, whatever their source, by their due instant', async (world) => {
    const now = world.clock.now()
    const sources = [from('media'), from('mail'), INTERNAL]
    await world.enqueue(...runsOf('media', ['m']), ...runsOf('mail', ['n']), 'i')
    await world.claim(['tm', 'tn', 'ti'], { sources })
    for (const [id, wakeAt] of [
      ['m', now + 30],
      ['n', now + 10],
      ['i', now + 20],
    ] as const) {
      await world.settle(id, (await world.run(id)).token ?? '', suspendUntil(wakeAt))
    }
    await world.enqueue(...runsOf('media', ['new m']), ...runsOf('mail', ['new n']), 'new i')
    world.clock.pass(30)
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4', '5', '6'], { sources }), [
      ...['n', 'i', 'm'],
      ...['new m', 'new n', 'new i'],
    ])
  })
}

function priorities(test: Test): void {
  const ranked = (id: string, priority: number) => newRun(id, { queue: 'media', priority })

  test('lower priority values first, then first in, first out (Q16)', async (world) => {
    await world.register('media', { priorityEnabled: true })
    await world.enqueue(
      ranked('a', 1),
      ranked('b', 0),
      ranked('c', -7),
      ranked('d', 0),
      ranked('e', 100),
      ranked('f', -7),
    )
    assert.deepEqual(await world.claimIds(['1', '2', '3', '4', '5', '6'], { sources: MEDIA }), [
      ...['c', 'f', 'b', 'd', 'a', 'e'],
    ])
  })

  test('on a queue that does not heed priorities they change nothing', async (world) => {
    await world.register('media')
    await world.enqueue(ranked('a', 1), ranked('b', -1), ranked('c', 0))
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources: MEDIA }), ['a', 'b', 'c'])
  })

  test('across definitions it is one order', async (world) => {
    await world.register('media', { priorityEnabled: true })
    await world.enqueue(ranked('a', 2), { ...ranked('b', 1), definition: 'refund' }, ranked('c', 1), ranked('d', 0))
    assert.deepEqual(
      await world.claimIds(['1', '2', '3', '4'], { sources: MEDIA, definitions: ['refund', 'charge'] }),
      [...['d', 'b', 'c', 'a']],
    )
  })

  test('who comes back keeps priority and place: handed back, reclaimed, requeued, delayed (Q17, P8)', async (world) => {
    await world.register('media', { priorityEnabled: true })
    const delayed = { ...ranked('delayed', 1), due: { type: 'after', ms: LEASE_MS } } as const
    await world.enqueue(
      ranked('last', 2),
      ranked('requeued', 1),
      ranked('reclaimed', 1),
      delayed,
      ranked('released', 1),
    )
    assert.deepEqual(await world.claimIds(['1', '2', '3'], { sources: MEDIA }), ['requeued', 'reclaimed', 'released'])
    const tokenOf = async (id: string) => (await world.run(id)).token ?? ''
    await world.settle('released', await tokenOf('released'), RELEASE)
    await world.settle('requeued', await tokenOf('requeued'), FAIL)
    await world.requeue('requeued')
    world.clock.pass(LEASE_MS)
    await world.reclaim()
    await world.enqueue(ranked('new', 1))
    assert.deepEqual(await oneByOne(world), ['requeued', 'reclaimed', 'delayed', 'released', 'new', 'last'])
  })
}

function paused(test: Test): void {
  test('nothing of a paused queue is claimed, no resume either; others go on', async (world) => {
    await world.register('media')
    await world.enqueue(...runsOf('media', ['a', 'b', 'c']), ...runsOf('mail', ['n']))
    await world.claim(['t1', 't2'], { sources: MEDIA })
    await world.settle('a', 't1', suspendUntil(world.clock.now()))
    await world.configure('media', { paused: true })
    const sources = [from('media'), from('mail')]
    assert.deepEqual(await world.claimIds(['t3', 't4'], { sources }), ['n'])
    await world.checkpoint('b', 't2', [outcome(0)])
    await world.settle('b', 't2', SUCCEED)
    assert.equal((await world.run('b')).status, 'SUCCESS', 'what runs already may end')
    await world.configure('media', { paused: false })
    assert.deepEqual(await world.claimIds(['t5', 't6'], { sources }), ['a', 'c'])
  })

  test('a paused queue accepts, cancels and requeues', async (world) => {
    await world.register('media')
    await world.configure('media', { paused: true })
    await world.enqueue(...runsOf('media', ['a', 'b']))
    await world.cancel('a')
    await world.requeue('a')
    assert.deepEqual(await world.claim(['t1'], { sources: MEDIA }), [])
    await world.configure('media', { paused: false })
    assert.deepEqual(await world.claimIds(['t1', 't2'], { sources: MEDIA }), ['a', 'b'])
  })
}

function resends(test: Test): void {
  test('a claim that is resent gives the same runs, and counts them within the room', async (world) => {
    await world.enqueue(...runsOf('media', ['a', 'b', 'c', 'd']))
    const narrow = { sources: [from('media', { room: 2 })] }
    const first = await world.claim(['t1', 't2', 't3'], narrow)
    assert.deepEqual(
      first.map(({ run }) => run.id),
      ['a', 'b'],
    )
    world.clock.pass(1_000)
    assert.deepEqual(await world.claim(['t1', 't2', 't3'], narrow), first, 'a process never holds more than its room')
    assert.equal((await world.run('c')).status, 'ENQUEUED')
  })

  test('a claim that is resent is answered, although its queue has been paused', async (world) => {
    await world.register('media')
    await world.enqueue(...runsOf('media', ['a', 'b']))
    const first = await world.claim(['t1'], { sources: MEDIA })
    await world.configure('media', { paused: true })
    assert.deepEqual(await world.claim(['t1'], { sources: MEDIA }), first)
  })
}

/** Claims until nothing is left, one at a time. */
async function oneByOne(world: World): Promise<readonly string[]> {
  const ids: string[] = []
  for (let turn = 0; ; turn++) {
    const [id] = await world.claimIds([`turn ${turn}`], { sources: MEDIA })
    if (id === undefined) return ids
    ids.push(id)
  }
}
