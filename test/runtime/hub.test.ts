/** What the hub passes on of what it did, and what it knows of queues. */
import { describe, expect, test } from 'vitest'
import type { Notice } from '../../src/runtime/notices.ts'
import { QueueView } from '../../src/runtime/queue-view.ts'
import type { ReclaimOutcome } from '../../src/store/contract.ts'
import type { QueueRecord } from '../../src/store/records.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { newRun } from './commands.ts'
import { turns, until } from './fast-scheduler.ts'
import { workerQueue, workshop } from './workshop.ts'

describe('notices', () => {
  async function listening() {
    const shop = await workshop()
    const notices: Notice[] = []
    shop.hub.notices.on((notice) => void notices.push(notice))
    return { ...shop, notices }
  }

  test('of claims taken away: that there is something to claim, or that others were changed too, and the ends', async () => {
    const { hub, notices } = await listening()
    const ending = { status: 'DEAD', failure: { kind: 'crashed', error: null } } as const
    const taken = { token: 't', owner: 'o' }
    const outcomes: ReclaimOutcome[] = [
      { runs: [], rippled: false },
      { runs: [{ id: 'a', ...taken, status: 'ENQUEUED', ending: null }], rippled: false },
      { runs: [{ id: 'a', ...taken, status: 'DEAD', ending }], rippled: true },
    ]
    for (const outcome of outcomes) {
      hub.committer.reclaim = async () => outcome
      await hub.reclaim({ deadOwners: [], limit: 1 })
    }
    expect(notices).toEqual([{ type: 'claimable' }, { type: 'changed' }, { type: 'ended', runId: 'a', ending }])
  })

  test('of queues that were registered or changed; of one that is not there, none', async () => {
    const { hub, notices } = await listening()
    await hub.registerQueues([workerQueue('q').registration])
    expect(await hub.changeQueue('q', { paused: true })).toMatchObject({ name: 'q', paused: true })
    expect(await hub.changeQueue('other', { paused: true })).toBeUndefined()
    expect(notices).toEqual([{ type: 'claimable' }, { type: 'claimable' }])
    expect(hub.queues.of('q')?.paused).toBe(true)
  })

  test('a clock must not move on while somebody waits for an answer', async () => {
    const { hub, enqueue } = await listening()
    await enqueue('q', ['a'])
    hub.signals.listen({ runId: 'a', position: 0 }, () => {})
    expect(hub.busy()).toBe(true)
    await until(() => !hub.busy())
    hub.waiter.listen('a', () => {})
    expect(hub.busy()).toBe(true)
    await until(() => !hub.busy())
  })
})

describe('what is known of queues', () => {
  const record = (differing: Partial<QueueRecord> = {}): QueueRecord => {
    const { registration } = workerQueue('q', { partitioned: true })
    return { ...registration, paused: false, updatedAt: 0, ...differing }
  }

  function viewing({ shared = true, broken = false } = {}) {
    const clock = new MockClock()
    let reads = 0
    const view = new QueueView({
      clock,
      capabilities: { durable: true, shared },
      queues: async () => {
        reads += 1
        if (broken) throw new Error('gone')
        return [record({ globalConcurrency: reads })]
      },
    })
    return { clock, view, reads: () => reads }
  }

  test('is read again every ten seconds at most, where other processes may change it', async () => {
    const { clock, view, reads } = viewing()
    for (let looks = 0; looks < 5; looks += 1) view.freshen()
    await turns(1)
    expect(reads()).toBe(1)
    await clock.advance(9_999)
    view.freshen()
    expect(reads()).toBe(1)
    await clock.advance(1)
    view.freshen()
    await turns(1)
    expect(view.of('q')?.globalConcurrency).toBe(2)
    const alone = viewing({ shared: false })
    alone.view.freshen()
    expect(alone.reads()).toBe(0)
  })

  test('stays as it was while the store can’t be read', async () => {
    const { view } = viewing({ broken: true })
    view.learn([record({ globalConcurrency: 7 })])
    view.freshen()
    await turns(1)
    expect(view.of('q')?.globalConcurrency).toBe(7)
  })

  test('tells what a start may not know, and the shortest retention of all', () => {
    const { view } = viewing()
    const start = (differing: object) => view.caveatOf(newRun('a', '1', { queue: 'q', ...differing }))
    expect(start({})).toBeNull()
    view.learn([record()])
    expect(start({})).toBe('keyless')
    expect(start({ partitionKey: 'k' })).toBeNull()
    expect(start({ partitionKey: 'k', priority: 1 })).toBe('priorityIgnored')
    expect(start({ queue: null })).toBeNull()
    expect(start({ queue: null, priority: 1 })).toBe('priorityIgnored')
    expect(view.shortestRetentionMs).toBe(Number.POSITIVE_INFINITY)
    view.learn([record({ retention: { success: 5, error: null, dead: 3, cancelled: 9 } })])
    expect(view.shortestRetentionMs).toBe(3)
    view.learn([record({ retention: null, priorityEnabled: true })])
    expect(view.shortestRetentionMs).toBe(Number.POSITIVE_INFINITY)
    expect(start({ partitionKey: 'k', priority: 1 })).toBeNull()
  })
})
