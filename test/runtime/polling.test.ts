/** What a process does when nothing happens, and when rounds fail: the fallback, never the latency. */
import { describe, expect, test } from 'vitest'
import { newRun } from './commands.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'
import { claimsOf, workerQueue, workshop } from './workshop.ts'

/** Real time stands still but for `pass`; the clock is the host's. */
async function idling() {
  const scheduler = new FastScheduler()
  scheduler.held = true
  return { scheduler, ...(await workshop({ clock: null, scheduler })) }
}

describe('Q19 polling', () => {
  test('comes once a second, a little sooner or later, or as often as a queue asks for', async () => {
    for (const [basePollingMs, other, expected] of [
      [5_000, 1_000, 1_000],
      [200, 1_000, 200],
      [5_000, 3_000, 3_000],
    ] as const) {
      const { scheduler, worker } = await idling()
      const queues = [
        workerQueue('a', {}, { basePollingMs }),
        workerQueue('b', {}, { basePollingMs: other }),
        workerQueue('not listened to', {}, { basePollingMs: 10, listened: false }),
      ]
      await worker({ queues })
      const polls = new Set<number>()
      for (let round = 0; round < 20; round += 1) {
        await turns(10)
        const poll = scheduler.delays.at(-1) ?? 0
        expect(poll).toBeGreaterThanOrEqual(expected * 0.95)
        expect(poll).toBeLessThanOrEqual(expected * 1.05)
        polls.add(poll)
        scheduler.pass(poll)
      }
      expect(polls.size, 'spread').toBeGreaterThan(10)
    }
  })

  test('finds what no notice told of', async () => {
    const { scheduler, worker, store, held } = await idling()
    await worker({ queues: [workerQueue('q')] })
    await turns(10)
    await store.commit([{ type: 'enqueue', commandId: 'c', runs: [newRun('1', '"1"', { queue: 'q' })] }])
    await turns(10)
    expect(held.begun).toEqual([])
    scheduler.pass(1_050)
    await until(() => held.begun.length === 1)
  })

  test('a process with ten queues that has nothing to do asks the store twice a second at most', async () => {
    const { scheduler, worker, calls } = await idling()
    await worker({ queues: Array.from({ length: 10 }, (_, n) => workerQueue(`q${n}`)) })
    await turns(10)
    calls.length = 0
    for (let passed = 0; passed < 60_000; passed += 25) {
      scheduler.pass(25)
      await turns(4)
    }
    const counts = new Map<string, number>()
    for (const { name } of calls) counts.set(name, (counts.get(name) ?? 0) + 1)
    expect([...counts.keys()].sort()).toEqual(['claim', 'nextExpiry', 'processes', 'reclaim'])
    expect(counts.get('claim')).toBeGreaterThanOrEqual(54)
    expect(counts.get('claim')).toBeLessThanOrEqual(63)
    expect(calls.length).toBeLessThan(2 * 60)
    for (const { sources } of claimsOf(calls)) expect(sources.length).toBe(11)
  })
})

describe('rounds that fail', () => {
  test('wait twice as long each time, up to the longest interval of the queues; one that succeeds ends that', async () => {
    const { scheduler, worker, hub, events, held, enqueue } = await idling()
    await worker({
      queues: [workerQueue('a', {}, { maxPollingMs: 90_000 }), workerQueue('b', {}, { maxPollingMs: 5_000 })],
    })
    await turns(10)
    const { claim } = hub.committer
    hub.committer.claim = () => Promise.reject(new Error('the database refuses'))
    const waits: number[] = []
    hub.notices.emit({ type: 'claimable' })
    for (let failures = 0; failures < 9; failures += 1) {
      await turns(10)
      waits.push(scheduler.delays.at(-1) ?? 0)
      scheduler.pass(waits.at(-1) ?? 0)
    }
    for (const [index, wait] of waits.entries()) {
      const full = Math.min(90_000, 1_000 * 2 ** index)
      expect(wait).toBeGreaterThanOrEqual(full * 0.8)
      expect(wait).toBeLessThanOrEqual(Math.min(90_000, full * 1.2))
    }
    expect(events.filter(({ type }) => type === 'service.failed').length).toBeLessThan(waits.length)
    await turns(10)
    hub.committer.claim = claim
    await enqueue('a', ['1'])
    scheduler.pass(90_000)
    await until(() => held.begun.length === 1)
    await turns(10)
    scheduler.delays.length = 0
    hub.notices.emit({ type: 'claimable' })
    await turns(10)
    expect(scheduler.delays.at(-1)).toBeLessThanOrEqual(1_050)
  })
})
