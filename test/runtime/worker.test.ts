/** What a launched worker tells of queues and starts, and what reaches the runs that it has in hand. */
import { describe, expect, test } from 'vitest'
import type { EngineEvent } from '../../src/core/engine-events.ts'
import type { Pass } from '../../src/runtime/replay/pass.ts'
import type { NewRun, Store } from '../../src/store/contract.ts'
import { newRun } from './commands.ts'
import { turns, until } from './fast-scheduler.ts'
import { handlerOf, workerQueue, workshop } from './workshop.ts'

const told = (events: readonly EngineEvent[], type: EngineEvent['type']) =>
  events.filter((event) => event.type === type)

describe('launch', () => {
  test('Q25 registers every queue, and the process with what it runs, from which queues, as which version', async () => {
    const { worker, store } = await workshop()
    const queues = [workerQueue('b', { globalConcurrency: 3 }), workerQueue('a', {}, { listened: false })]
    const { owner } = await worker({ queues, version: 'v1' })
    expect((await store.queues()).map(({ name, globalConcurrency }) => [name, globalConcurrency])).toEqual([
      ['a', null],
      ['b', 3],
    ])
    expect(await store.processes()).toMatchObject([
      { owner, pid: process.pid, definitions: ['d'], queues: ['b'], version: 'v1' },
    ])
  })

  test('tells once of knobs that differ from what holds, by their names', async () => {
    const { worker, hub, events } = await workshop()
    const retention = { success: 1_000, error: null, dead: null, cancelled: null }
    const newer = {
      ...{ globalConcurrency: 2, releaseWhileWaiting: true, rateLimit: { limit: 1, periodMs: 10 } },
      ...{ priorityEnabled: true, partitioned: true, retention, configVersion: 2 },
    }
    await hub.registerQueues([
      workerQueue('all', newer).registration,
      workerQueue('rate', { ...newer, rateLimit: { limit: 1, periodMs: 11 } }).registration,
      workerQueue('same', { ...newer, retention: null }).registration,
    ])
    await worker({
      queues: [
        workerQueue('all'),
        workerQueue('rate', { ...newer, configVersion: 1 }),
        workerQueue('same', {
          ...{ ...newer, configVersion: 0 },
          retention: { success: null, error: null, dead: null, cancelled: null },
        }),
        workerQueue('new', newer),
      ],
    })
    const knobs = [
      'globalConcurrency',
      'releaseWhileWaiting',
      'rateLimiter',
      'priorityEnabled',
      'partitioned',
      'retention',
    ]
    expect(told(events, 'queue.differs')).toEqual([
      { type: 'queue.differs', queue: 'all', knobs },
      { type: 'queue.differs', queue: 'rate', knobs: ['rateLimiter'] },
    ])
  })

  test('tells of knobs that it changes for all, and those that run already tell of it, too', async () => {
    const { worker, hub, events } = await workshop()
    const limited = { globalConcurrency: 2, rateLimit: { limit: 1, periodMs: 10 } }
    await worker({ queues: [workerQueue('a', limited), workerQueue('b')] })
    expect(told(events, 'queue.changed')).toEqual([])
    await worker({ queues: [workerQueue('a'), workerQueue('b')] })
    const knobs = ['globalConcurrency', 'rateLimiter']
    expect(told(events, 'queue.changed')).toEqual([{ type: 'queue.changed', queue: 'a', knobs }])
    expect(told(events, 'queue.differs')).toEqual([{ type: 'queue.differs', queue: 'a', knobs }])

    await hub.changeQueue('b', { paused: true })
    await hub.changeQueue('b', { globalConcurrency: 7 })
    hub.queues.learn(await hub.store.queues())
    expect(told(events, 'queue.differs'), 'once, and not of what was changed here').toHaveLength(1)
  })

  test('that finds the queues refused leaves no process behind', async () => {
    const { worker, store, hub } = await workshop()
    hub.committer.registerQueues = () => Promise.reject(new Error('refused'))
    await expect(worker({ queues: [workerQueue('q')] })).rejects.toThrow('refused')
    expect(await store.processes()).toEqual([])
  })
})

describe('starts that will not do what one may think', () => {
  const queues = [
    workerQueue('keyed', { partitioned: true }),
    workerQueue('plain'),
    workerQueue('ordered', { priorityEnabled: true }),
  ]

  test('Q20 are told: each keyless one, and once of a queue that ignores priorities', async () => {
    const { worker, enqueue, events, held } = await workshop()
    await worker({ queues })
    await enqueue('keyed', ['k1', 'k2'])
    await enqueue('keyed', ['fine'], { partitionKey: 'x' })
    await enqueue('plain', ['p1'], { priority: 5 })
    await enqueue('plain', ['p2'], { priority: -1 })
    await enqueue('ordered', ['o1'], { priority: 5 })
    await until(() => held.now.length === 4)
    expect(events.filter(({ type }) => type.startsWith('start.'))).toEqual([
      { type: 'start.keyless', runId: 'k1', queue: 'keyed' },
      { type: 'start.keyless', runId: 'k2', queue: 'keyed' },
      { type: 'start.priorityIgnored', queue: 'plain' },
    ])
    expect(held.now).not.toContain('k1')
  })

  test('also those that bodies start, and that steps stage', async () => {
    const { worker, hub, enqueue, events, held } = await workshop()
    await worker({ queues })
    await enqueue('plain', ['parent'])
    await until(() => held.now.length === 1)
    const token = await tokenOf(hub.store, 'parent')
    const child = (id: string): NewRun => newRun(id, '1', { queue: 'keyed' })
    const entry = {
      seq: 0,
      type: 'outcome',
      position: 0,
      verb: 'start',
      name: 'd',
      failed: false,
      value: null,
    } as const
    const notes = { calls: 1, delivered: 0, notes: null, attempts: 1 }
    const fence = { runId: 'parent', token } as const
    const action = { type: 'start', run: child('child') } as const
    await hub.submit({ type: 'perform', ...fence, entry: { ...entry, ...notes }, action })
    const effects = [{ type: 'start', run: child('follow-up') } as const]
    await hub.submit({
      ...{ type: 'checkpoint', ...fence },
      entries: [{ ...entry, ...notes, seq: 1, position: 1, value: '1', effects }],
    })
    expect(told(events, 'start.keyless')).toEqual([
      { type: 'start.keyless', runId: 'child', queue: 'keyed' },
      { type: 'start.keyless', runId: 'follow-up', queue: 'keyed' },
    ])
  })
})

describe('runs in hand', () => {
  test('are asked to cancel when their parent is cancelled', async () => {
    const { worker, hub, store, held, events, enqueue } = await workshop()
    const aborted: string[] = []
    const body = async (pass: Pass, input: unknown): Promise<unknown> => {
      void pass.call({
        ...{ verb: 'step', name: 'waits', method: body },
        begin: () => {
          pass.enter({ isUserCode: false, abort: () => void aborted.push(String(input)) })
        },
      })
      return held.body(input)
    }
    await worker({ handlers: new Map([['d', handlerOf('d', body)]]) })
    await enqueue('nowhere', ['parent'])
    await enqueue(null, ['child', 'stranger'], { parentId: 'parent' })
    await until(() => held.now.length === 2)
    await hub.submit({ type: 'cancel', commandId: 'c', runId: 'parent' })
    await until(() => aborted.length === 2)
    held.endAll()
    await turns(10)
    const runs = await store.runs(['parent', 'child', 'stranger'])
    expect(runs.map((run) => run?.cancelRequested || run?.status)).toEqual(['CANCELLED', true, true])
    expect(told(events, 'run.ended').length).toBeLessThanOrEqual(2)
  })

  test('tell of follow-ups that were refused', async () => {
    const { worker, enqueue, events, held } = await workshop()
    const body = async (pass: Pass, input: unknown): Promise<unknown> => {
      if (input !== 'stages') return held.body(input)
      return pass.call({
        ...{ verb: 'step', name: 'stages', method: body },
        begin: (call) => {
          const run = newRun('there', '"other input"', { inputHash: 'other' })
          pass.record(call, { failed: false, value: '1', effects: [{ type: 'start', run }] })
        },
      })
    }
    await worker({ handlers: new Map([['d', handlerOf('d', body)]]) })
    await enqueue(null, ['there'])
    await enqueue(null, ['stages'])
    await until(() => told(events, 'run.ended').length === 1)
    expect(told(events, 'effect.refused')).toEqual([
      { type: 'effect.refused', runId: 'stages', refusal: { type: 'mismatch', id: 'there', definition: 'd' } },
    ])
    expect(told(events, 'run.ended')).toMatchObject([{ runId: 'stages', status: 'SUCCESS' }])
  })
})

async function tokenOf(store: Store, runId: string): Promise<string> {
  const [run] = await store.runs([runId])
  return run?.token ?? ''
}
