import { describe, expect, test } from 'vitest'
import { Emitter } from '../../src/core/events.ts'
import type { Notice } from '../../src/runtime/notices.ts'
import { type Ended, endingWaiter, signalWaiter } from '../../src/runtime/waiter.ts'
import type { Ending } from '../../src/store/records.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'

const SUCCESS: Ending = { status: 'SUCCESS', output: '1' }

function waiting() {
  const scheduler = new FastScheduler()
  scheduler.held = true
  const notices = new Emitter<Notice>()
  const endings = new Map<string, Ending | 'missing'>()
  const signals = new Map<string, string>()
  const queries: string[][] = []
  let broken = false
  const ask = <T>(names: readonly string[], answer: T): Promise<T> => {
    queries.push([...names])
    return broken ? Promise.reject(new Error('gone')) : Promise.resolve(answer)
  }
  const store = {
    endings: (ids: readonly string[]) => ask(ids, new Map([...endings].filter(([id]) => ids.includes(id)))),
    signals: (waits: readonly { readonly runId: string; readonly position: number }[]) => {
      const names = waits.map(({ runId, position }) => `${runId}/${position}`)
      const found = new Map<number, string>()
      for (const [index, name] of names.entries()) {
        const payload = signals.get(name)
        if (payload !== undefined) found.set(index, payload)
      }
      return ask(names, found)
    },
  }
  const runs = endingWaiter(store, scheduler)
  const payloads = signalWaiter(store, scheduler)
  for (const waiter of [runs, payloads]) waiter.start(notices)
  const breakStore = (isBroken: boolean): void => {
    broken = isBroken
  }
  return { scheduler, notices, endings, signals, queries, runs, payloads, breakStore }
}

describe('waits for ends', () => {
  test('share a query when they begin together, and cost none when this process ends the run', async () => {
    const { notices, queries, runs } = waiting()
    const told: Ended[] = []
    for (let listeners = 0; listeners < 1_000; listeners += 1) {
      runs.listen(`run-${listeners % 10}`, (ended) => void told.push(ended))
    }
    await until(() => queries.length === 1)
    expect(queries[0]?.length).toBe(10)
    notices.emit({ type: 'ended', runId: 'run-3', ending: SUCCESS })
    expect(told).toEqual(Array.from({ length: 100 }, () => SUCCESS))
    expect(runs.waits).toBe(9)
    await turns(4)
    expect(queries.length).toBe(1)
  })

  test('ask again soon after a change that nobody named, once for many, and every 2 s without any', async () => {
    const { scheduler, notices, endings, queries, runs } = waiting()
    const told: Ended[] = []
    runs.listen('a', (ended) => void told.push(ended))
    runs.listen('b', (ended) => void told.push(ended))
    await until(() => queries.length === 1)
    for (let changes = 0; changes < 50; changes += 1) notices.emit({ type: 'changed' })
    endings.set('a', SUCCESS)
    scheduler.pass(20)
    await until(() => told.length === 1)
    expect(queries.length).toBe(2)
    endings.set('b', 'missing')
    scheduler.pass(2_000)
    await until(() => told.length === 2)
    expect(queries[2]).toEqual(['b'])
    expect(scheduler.armed, 'nobody waits, so nothing is armed').toBe(0)
  })

  test('outlive a store that can’t be read', async () => {
    const { scheduler, endings, queries, runs, breakStore } = waiting()
    const told: Ended[] = []
    breakStore(true)
    runs.listen('a', (ended) => void told.push(ended))
    await until(() => queries.length === 1 && !runs.busy)
    endings.set('a', SUCCESS)
    breakStore(false)
    scheduler.pass(2_000)
    await until(() => told.length === 1)
  })

  test('can be given up, and are told when the store is closed, also those that come later', async () => {
    const { scheduler, runs } = waiting()
    const told: string[] = []
    const giveUp = runs.listen('a', () => void told.push('given up'))
    runs.listen('a', (ended) => void told.push(String(ended)))
    giveUp()
    runs.stop()
    runs.listen('b', (ended) => void told.push(String(ended)))
    await turns(2)
    expect(told).toEqual(['closed', 'closed'])
    expect(scheduler.armed).toBe(0)
  })
})

describe('waits for signals', () => {
  const wait = (runId: string, position: number) => ({ runId, position })

  test('are answered by position; a notice has the run asked for, and no other', async () => {
    const { notices, signals, queries, payloads } = waiting()
    const told: (string | null)[] = []
    signals.set('a/0', '"there"')
    for (const each of [wait('a', 0), wait('a', 1), wait('b', 0)]) {
      payloads.listen(each, (payload) => void told.push(`${each.runId}/${each.position} ${payload}`))
    }
    await until(() => told.length === 1)
    expect(queries).toEqual([['a/0', 'a/1', 'b/0']])
    signals.set('a/1', '2').set('b/0', '3')
    notices.emit({ type: 'signalled', runId: 'a' })
    expect(payloads.busy, 'a clock must not move on now').toBe(true)
    await until(() => !payloads.busy)
    expect(told).toEqual(['a/0 "there"', 'a/1 2'])
    expect(queries[1]).toEqual(['a/1'])
    notices.emit({ type: 'signalled', runId: null })
    await until(() => !payloads.busy)
    expect(told[2]).toBe('b/0 3')
  })

  test('find a signal that comes while they ask, or from another process', async () => {
    const { scheduler, notices, signals, queries, payloads } = waiting()
    const told: (string | null)[] = []
    payloads.listen(wait('a', 0), (payload) => void told.push(payload))
    await until(() => queries.length === 1)
    signals.set('a/0', '1')
    notices.emit({ type: 'signalled', runId: 'a' })
    await until(() => told.length === 1)
    payloads.listen(wait('a', 7), (payload) => void told.push(payload))
    await turns(4)
    signals.set('a/7', '7')
    notices.emit({ type: 'changed' })
    scheduler.pass(20)
    await until(() => told.length === 2)
    expect(told).toEqual(['1', '7'])
  })

  test('of runs whose ids end in digits are told apart', async () => {
    const { signals, payloads } = waiting()
    const told: string[] = []
    signals.set('a1/1', '"first"').set('a/11', '"second"')
    payloads.listen(wait('a1', 1), (payload) => void told.push(`a1/1 ${payload}`))
    payloads.listen(wait('a', 11), (payload) => void told.push(`a/11 ${payload}`))
    await until(() => told.length === 2)
    expect(told).toEqual(['a1/1 "first"', 'a/11 "second"'])
  })
})
