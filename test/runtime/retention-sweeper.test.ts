import { describe, expect, test } from 'vitest'
import { realClock } from '../../src/core/clock.ts'
import { Emitter } from '../../src/core/events.ts'
import { realRandom } from '../../src/core/random.ts'
import type { Notice } from '../../src/runtime/notices.ts'
import type { QueueChanges } from '../../src/runtime/queue-view.ts'
import { RetentionSweeper } from '../../src/runtime/retention-sweeper.ts'
import type { SweepOutcome } from '../../src/store/contract.ts'
import type { Retention } from '../../src/store/records.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'
import { handlerOf, workerQueue, workshop } from './workshop.ts'

const FOREVER: Retention = { success: null, error: null, dead: null, cancelled: null }
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** A worker whose runs end at once, kept as `retention` says. */
async function keeping(retention: Retention | null, queueRetention: Retention | null = null) {
  const clock = new MockClock()
  const shop = await workshop({ clock })
  const body = async (_pass: unknown, input: unknown): Promise<unknown> => {
    if (input === 'fails') throw new Error('so it does')
    return null
  }
  const handlers = new Map([['d', handlerOf('d', body, { retention })]])
  await shop.worker({ handlers, queues: [workerQueue('q', { retention: queueRetention })] })
  await turns(10)
  const exists = async (...names: readonly string[]) =>
    (await shop.store.runs(names)).flatMap((run) => (run === undefined ? [] : run.id))
  return { ...shop, clock, exists }
}

describe('Q45 ended runs', () => {
  test('are removed when their retention is over, and not before, however they came to an end', async () => {
    const { clock, enqueue, exists, events } = await keeping({ ...FOREVER, success: MINUTE_MS, error: HOUR_MS })
    await enqueue(null, ['good', 'fails'])
    await clock.advance(MINUTE_MS)
    expect(await exists('good', 'fails')).toEqual(['good', 'fails'])
    await clock.advance(1)
    expect(await exists('good', 'fails')).toEqual(['fails'])
    await clock.advance(HOUR_MS - MINUTE_MS - 1)
    expect(await exists('fails')).toEqual(['fails'])
    await clock.advance(1)
    expect(await exists('fails')).toEqual([])
    const removed = events.filter(({ type }) => type === 'runs.removed')
    expect(removed).toEqual([
      { type: 'runs.removed', count: 1 },
      { type: 'runs.removed', count: 1 },
    ])
  })

  test('at instants that a mock clock does not jump over', async () => {
    const { clock, calls, enqueue, exists } = await keeping({ ...FOREVER, success: MINUTE_MS })
    await enqueue(null, ['first'])
    await clock.advance(MINUTE_MS / 2)
    await enqueue(null, ['second'])
    await turns(10)
    calls.length = 0
    await clock.advance('30d')
    expect(await exists('first', 'second')).toEqual([])
    expect(calls.filter(({ name }) => name === 'sweep').length).toBeLessThan(10)
  })

  test('are kept as their queue says where their definition says nothing', async () => {
    const { clock, enqueue, exists } = await keeping(null, { ...FOREVER, success: MINUTE_MS })
    await enqueue('q', ['queued'])
    await enqueue(null, ['plain'])
    await clock.advance(MINUTE_MS + 1)
    expect(await exists('queued', 'plain')).toEqual(['plain'])
  })

  test('of thousands, batch after batch, with everybody else’s work in between', async () => {
    const { clock, calls, enqueue, exists, hub, store } = await keeping({ ...FOREVER, success: MINUTE_MS })
    const names = Array.from({ length: 900 }, (_, n) => `${n}`)
    await enqueue(null, names)
    await until(() => !hub.busy())
    await clock.advance(1)
    expect((await store.list({ status: ['SUCCESS'], limit: 1_000 })).length).toBe(900)
    calls.length = 0
    await clock.advance(MINUTE_MS)
    expect(await exists(...names)).toEqual([])
    const sweeps = calls.filter(({ name }) => name === 'sweep')
    expect(sweeps.length).toBeGreaterThanOrEqual(5)
    expect(sweeps[0]?.args[0]).toMatchObject({ limit: 200, definitions: [{ name: 'd' }] })
  })
})

/** A sweeper by itself: `outcomes` are what the store says, round by round, and then that there is nothing. */
function sweeping(outcomes: SweepOutcome[], { real = false, retention = FOREVER } = {}) {
  const clock = new MockClock(1_000_000)
  const scheduler = new FastScheduler()
  scheduler.held = true
  const notices = new Emitter<Notice>()
  const armed: number[] = []
  let sweeps = 0
  const timed = {
    ...{ kind: real ? ('real' as const) : ('mock' as const), now: () => clock.now(), join: realClock.join },
    at: (...[instant, callback, options]: Parameters<MockClock['at']>) => {
      armed.push(instant - clock.now())
      return clock.at(instant, callback, options)
    },
  }
  const sweeper = new RetentionSweeper({
    clock: timed,
    hub: {
      notices,
      queues: { shortestRetentionMs: Number.POSITIVE_INFINITY, changes: new Emitter<QueueChanges>() },
      sweep: async () => {
        sweeps += 1
        return outcomes.shift() ?? { removed: 0, nextAt: null }
      },
    },
    definitions: [{ name: 'd', retention }],
    scheduler,
    random: realRandom,
    onEvent: () => {},
    onError: () => {},
  })
  const ended = (): void => notices.emit({ type: 'ended', runId: 'a', ending: { status: 'SUCCESS', output: '1' } })
  return { clock, scheduler, sweeper, armed, notices, ended, sweeps: () => sweeps }
}

describe('the sweeper', () => {
  test('sweeps at start and once an hour, also where everything is kept: receipts are not', async () => {
    const { clock, sweeper, ended, sweeps } = sweeping([])
    sweeper.start()
    await turns(4)
    expect(sweeps()).toBe(1)
    ended()
    await clock.advance(HOUR_MS - 1)
    expect(sweeps()).toBe(1)
    await clock.advance(1)
    await turns(4)
    expect(sweeps()).toBe(2)
    await sweeper.stop()
  })

  test('does not spin on what is due and can’t be removed', async () => {
    const { sweeper, sweeps, clock } = sweeping(
      Array.from({ length: 1_000 }, () => ({ removed: 0, nextAt: 1_000_000 - 1 })),
    )
    sweeper.start()
    await turns(50)
    expect(sweeps()).toBe(1)
    expect(clock.now()).toBe(1_000_000)
    await sweeper.stop()
  })

  test('comes once for all runs that end within the shortest retention, by real time not every moment', async () => {
    for (const [real, expected] of [
      [false, 11],
      [true, 1_000],
    ] as const) {
      const { sweeper, armed, ended, notices } = sweeping([], { real, retention: { ...FOREVER, dead: 10 } })
      sweeper.start()
      await turns(4)
      armed.length = 0
      for (let runs = 0; runs < 100; runs += 1) ended()
      notices.emit({ type: 'changed' })
      expect(armed).toEqual([expected])
      await sweeper.stop()
    }
  })

  test('leaves a round that comes soon enough as it is', async () => {
    const { sweeper, armed, ended } = sweeping([{ removed: 1, nextAt: 1_000_500 }], {
      retention: { ...FOREVER, dead: 1_000 },
    })
    sweeper.start()
    await turns(4)
    armed.length = 0
    ended()
    expect(armed).toEqual([])
    await sweeper.stop()
    ended()
    expect(armed, 'stopped').toEqual([])
  })
})
