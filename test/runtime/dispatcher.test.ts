import { describe, expect, test } from 'vitest'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { turns, until } from './fast-scheduler.ts'
import { claimsOf, handlerOf, workerQueue, workshop } from './workshop.ts'

/** Enough for a round, the commit that it follows and the one that it leads to, without any help of a clock. */
const SETTLED = 30

describe('one claim', () => {
  test('serves the internal queue and every queue that is listened to, another first each time', async () => {
    const { worker, hub, calls, held, enqueue } = await workshop()
    const queues = [workerQueue('a'), workerQueue('b'), workerQueue('deaf', {}, { listened: false })]
    await worker({ queues })
    await turns(SETTLED)
    for (const name of ['1', '2', '3']) {
      hub.notices.emit({ type: 'claimable' })
      await enqueue('a', [`a${name}`])
      await turns(SETTLED)
    }
    const firsts = claimsOf(calls).map(({ sources }) => sources.map(({ queue }) => queue))
    expect(firsts[0]).toEqual([null, 'a', 'b'])
    expect(firsts[1]).toEqual(['a', 'b', null])
    expect(firsts[2]).toEqual(['b', null, 'a'])
    expect(held.begun).toEqual(['a1', 'a2', 'a3'])
  })

  test('Q22 a queue that is not listened to keeps its runs', async () => {
    const { worker, store, held, enqueue } = await workshop()
    await worker({ queues: [workerQueue('deaf', {}, { listened: false })] })
    await enqueue('deaf', ['left'])
    await enqueue(null, ['taken'])
    await until(() => held.begun.length === 1)
    expect(held.begun).toEqual(['taken'])
    expect((await store.runs(['left']))[0]?.status).toBe('ENQUEUED')
  })

  test('asks with what the definitions say, the version, and the lease of each queue', async () => {
    const { worker, calls } = await workshop({ leaseMs: 20_000 })
    await worker({ queues: [workerQueue('a', {}, { leaseMs: 5_000 })], version: 'v1' })
    await turns(SETTLED)
    const [request] = claimsOf(calls)
    expect(request?.definitions).toEqual([{ name: 'd', kind: 'workflow', maxRecoveries: 50, timeoutMs: null }])
    expect(request?.version).toBe('v1')
    expect(request?.sources.map(({ queue, leaseMs }) => [queue, leaseMs])).toEqual([
      [null, 20_000],
      ['a', 5_000],
    ])
  })
})

describe('room', () => {
  test('Q10 workerConcurrency is never exceeded, and a slot that comes free is filled at once', async () => {
    const { worker, held, enqueue } = await workshop()
    await worker({ queues: [workerQueue('q', {}, { workerConcurrency: 2 })] })
    await enqueue('q', ['1', '2', '3', '4', '5'])
    await until(() => held.now.length === 2)
    for (const name of ['1', '2', '3', '4', '5']) {
      expect(held.now.length).toBeLessThanOrEqual(2)
      held.end(name)
      await turns(SETTLED)
    }
    expect(held.begun).toEqual(['1', '2', '3', '4', '5'])
  })

  test('Q10 Q21 of a partitioned queue it counts per key', async () => {
    const { worker, held, enqueue } = await workshop()
    await worker({ queues: [workerQueue('q', { partitioned: true }, { workerConcurrency: 1 })] })
    for (const key of ['x', 'y', 'z']) {
      await enqueue('q', [`${key}1`, `${key}2`], { partitionKey: key })
    }
    await until(() => held.now.length === 3)
    await turns(SETTLED)
    expect(held.now).toEqual(['x1', 'y1', 'z1'])
    held.end('y1')
    await until(() => held.now.includes('y2'))
    expect(held.now).toEqual(['x1', 'z1', 'y2'])
  })

  test('a slot that comes free while a claim is under way is not overlooked', async () => {
    const { worker, store, held, enqueue, hub } = await workshop()
    await worker({ queues: [workerQueue('q', { partitioned: true }, { workerConcurrency: 2 })] })
    await enqueue('q', ['1', '2'], { partitionKey: 'x' })
    await until(() => held.now.length === 2)
    // One ends, so that the next claim may take one of the lane; the other ends while that claim is under way.
    const claim = store.claim.bind(store)
    let claims = 0
    hub.committer.claim = async (request) => {
      claims += 1
      const outcome = await claim(request)
      if (claims > 1) return outcome
      held.end('2')
      await turns(SETTLED)
      return outcome
    }
    held.end('1')
    await enqueue('q', ['3', '4', '5'], { partitionKey: 'x' })
    await turns(3 * SETTLED)
    expect(held.now).toEqual(['3', '4'])
  })

  test('maxConcurrent bounds all queues together', async () => {
    const { worker, held, enqueue } = await workshop()
    await worker({ queues: [workerQueue('a'), workerQueue('b')], maxConcurrent: 3 })
    await enqueue('a', ['a1', 'a2', 'a3'])
    await enqueue('b', ['b1', 'b2', 'b3'])
    await enqueue(null, ['i1', 'i2', 'i3'])
    await until(() => held.now.length === 3)
    for (let ended = 0; ended < 9; ended += 1) {
      await turns(SETTLED)
      expect(held.now.length).toBeLessThanOrEqual(3)
      held.end(held.now[0] ?? '')
    }
    await until(() => held.now.length === 0)
    expect(held.begun.length).toBe(9)
  })

  test('Q9 a round claims at most maxTasksPerIteration of a queue, and comes back at once for more', async () => {
    const { worker, calls, store, held, enqueue } = await workshop()
    await enqueueBeforeLaunch()
    await worker({ queues: [workerQueue('q', {}, { maxTasksPerIteration: 3 })] })
    await until(() => held.now.length === 10)
    const rooms = claimsOf(calls).map(({ sources }) => sources.find(({ queue }) => queue === 'q')?.room)
    expect(rooms).toEqual([3, 3, 3, 3])
    expect(claimsOf(calls)[0]?.tokens.length).toBe(100)

    async function enqueueBeforeLaunch(): Promise<void> {
      await store.open()
      await enqueue(
        'q',
        Array.from({ length: 10 }, (_, n) => `${n}`),
      )
    }
  })
})

describe('a slot of a queue with a global limit', () => {
  const limited = workerQueue('q', { globalConcurrency: 1 })

  test('is taken by the next run as soon as the one before has ended', async () => {
    const { worker, held, enqueue } = await workshop()
    await worker({ queues: [limited] })
    await enqueue('q', ['1', '2', '3'])
    for (const name of ['1', '2', '3']) {
      await until(() => held.now.includes(name))
      await turns(SETTLED)
      expect(held.now).toEqual([name])
      held.end(name)
    }
  })

  test('is taken at once by another engine of the process, if only that one can run the next', async () => {
    const { worker, held, enqueue } = await workshop()
    await worker({ queues: [limited] })
    await worker({ queues: [limited], handlers: new Map([['e', handlerOf('e', (_pass, input) => held.body(input))]]) })
    await enqueue('q', ['1'])
    await enqueue('q', ['2'], { definition: 'e' })
    for (const name of ['1', '2']) {
      await until(() => held.now.includes(name))
      await turns(SETTLED)
      held.end(name)
    }
  })

  test('comes free when a run that holds it asleep is cancelled', async () => {
    const { worker, hub, store, held, enqueue } = await workshop()
    const asleep = { runId: 'asleep', token: 't', owner: 'o' }
    await hub.registerQueues([limited.registration])
    await enqueue('q', ['asleep'])
    const source = { queue: 'q', leaseMs: 1_000, room: 1, lanes: null }
    const definitions = [{ name: 'd', kind: 'workflow', maxRecoveries: 50, timeoutMs: null } as const]
    await hub.claim({ owner: 'o', tokens: ['t'], definitions, version: null, sources: [source] })
    const wakeAt = store.clock.now() + 3_600_000
    const settlement = { type: 'suspend', wakeAt, children: [] } as const
    await hub.submit({ type: 'settle', runId: asleep.runId, token: asleep.token, entries: [], settlement })
    await worker({ queues: [limited] })
    await enqueue('q', ['next'])
    await turns(SETTLED)
    expect(held.begun).toEqual([])
    await hub.submit({ type: 'cancel', commandId: 'c', runId: 'asleep' })
    await until(() => held.begun.length === 1)
  })
})

describe('nothing is lost, and nothing is asked in vain', () => {
  test('a slot that comes free where nothing can wait for it costs no claim', async () => {
    const { worker, calls, held, enqueue } = await workshop()
    await worker({ queues: [workerQueue('free'), workerQueue('wide', {}, { workerConcurrency: 5 })] })
    await enqueue('free', ['1'])
    await enqueue('wide', ['2', '3'])
    await until(() => held.now.length === 3)
    await turns(SETTLED)
    calls.length = 0
    for (const name of ['1', '2', '3']) held.end(name)
    await turns(SETTLED)
    expect(claimsOf(calls)).toEqual([])
  })

  test('an instant that has come and brings nothing is not asked for again and again', async () => {
    const { worker, hub, store } = await workshop()
    let claims = 0
    hub.committer.claim = async () => {
      claims += 1
      return { runs: [], nextAt: store.clock.now() }
    }
    await worker()
    await turns(5 * SETTLED)
    expect(claims).toBe(1)
  })

  test('Q26 a delayed run begins at its instant, whoever knew of it when', async () => {
    const clock = new MockClock()
    const { worker, held, enqueue } = await workshop({ clock })
    const begun: [string, number][] = []
    const launchedAt = clock.now()
    await enqueue('q', ['before'], { due: { type: 'after', ms: 10_000 } })
    await worker({ queues: [workerQueue('q')] })
    await turns(SETTLED)
    await enqueue('q', ['after'], { due: { type: 'at', instant: launchedAt + 7_500 } })
    await enqueue(null, ['soon'], { due: { type: 'after', ms: 2_500 } })
    held.endAll()
    for (let at = 500; at <= 12_000; at += 500) {
      await clock.advance(500)
      for (const name of held.begun.slice(begun.length)) begun.push([name, at])
    }
    expect(begun).toEqual([
      ['soon', 2_500],
      ['after', 7_500],
      ['before', 10_000],
    ])
  })

  test('what becomes due later is heard of during a round, also in one that came for an instant', async () => {
    const clock = new MockClock()
    const { worker, hub, held, enqueue } = await workshop({ clock })
    held.endAll()
    await worker({ queues: [workerQueue('q')] })
    await enqueue('q', ['first'], { due: { type: 'after', ms: 1_000 } })
    await turns(SETTLED)
    const { claim } = hub.committer
    let late = false
    hub.committer.claim = async (request) => {
      const outcome = await claim.call(hub.committer, request)
      if (!late) {
        late = true
        await enqueue('q', ['second'], { due: { type: 'after', ms: 100 } })
      }
      return outcome
    }
    await clock.advance(1_000)
    expect(held.begun).toEqual(['first'])
    await clock.advance(100)
    expect(held.begun).toEqual(['first', 'second'])
  })

  test('a queue that is resumed, or whose limit is raised, is served at once', async () => {
    const { worker, hub, held, enqueue } = await workshop()
    await worker({ queues: [workerQueue('q', { globalConcurrency: 1 })] })
    await hub.changeQueue('q', { paused: true })
    await enqueue('q', ['1', '2'])
    await turns(SETTLED)
    expect(held.now).toEqual([])
    await hub.changeQueue('q', { paused: false })
    await until(() => held.now.length === 1)
    await hub.changeQueue('q', { globalConcurrency: 2 })
    await until(() => held.now.length === 2)
  })
})

describe('D-03 D-27 a process that shuts down', () => {
  test('claims nothing more', async () => {
    const { worker, calls, store, held, enqueue, hub } = await workshop()
    const draining = await worker({ queues: [workerQueue('q')] })
    await enqueue('q', ['1'])
    await until(() => held.now.length === 1)
    const down = draining.shutdown(60_000)
    await turns(SETTLED)
    calls.length = 0
    await enqueue('q', ['2'])
    await enqueue(null, ['3'])
    hub.notices.emit({ type: 'changed' })
    await turns(SETTLED)
    held.end('1')
    await down
    expect(claimsOf(calls)).toEqual([])
    const records = await store.runs(['1', '2', '3'])
    expect(records.map((run) => run?.status)).toEqual(['SUCCESS', 'ENQUEUED', 'ENQUEUED'])
  })

  test('hands back what a claim brings that was under way', async () => {
    const { worker, hub, store, held, enqueue } = await workshop()
    const draining = await worker({ queues: [workerQueue('q')] })
    await turns(SETTLED)
    const { claim } = hub.committer
    let answer = (): void => {}
    const stuck = new Promise<void>((resolve) => {
      answer = resolve
    })
    hub.committer.claim = async (request) => {
      const outcome = await claim.call(hub.committer, request)
      await stuck
      return outcome
    }
    await enqueue('q', ['1'])
    await turns(SETTLED)
    const down = draining.shutdown(60_000)
    await turns(SETTLED)
    answer()
    await down
    expect(held.begun).toEqual([])
    expect((await store.runs(['1']))[0]).toMatchObject({ status: 'ENQUEUED', attempt: 0 })
  })

  test('runs or hands back what it claims at that very moment, no attempt spent', async () => {
    for (let round = 0; round < 200; round += 1) {
      const { worker, hub, store, held, enqueue } = await workshop()
      const ending = await worker({ queues: [workerQueue('q')] })
      const names = Array.from({ length: 5 }, (_, n) => `${n}`)
      await enqueue('q', names)
      await turns(round % 7)
      await ending.shutdown(0)
      held.endAll()
      for (const run of await store.runs(names)) {
        expect(['ENQUEUED', 'SUCCESS']).toContain(run?.status)
        if (run?.status === 'ENQUEUED') expect(run.attempt).toBe(0)
      }
      expect(await store.processes()).toEqual([])
      expect(hub.busy()).toBe(false)
    }
  })
})
