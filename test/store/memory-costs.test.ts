import { describe, expect, it } from 'vitest'
import { newRun } from '../../src/store/conformance/makers.ts'
import { claimRequest, from, INTERNAL, newQueue } from '../../src/store/conformance/sources.ts'
import type { Command, NewRun, Settlement, Store } from '../../src/store/contract.ts'
import { memory } from '../../src/store/memory/index.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'

const SOURCES = [from('media'), INTERNAL]
const DAY_MS = 24 * 3_600_000
const MANY = 50_000
const LANES = 10_000

const clock = new MockClock()

async function storeOf(runs: readonly NewRun[], partitioned = false): Promise<Store> {
  const store = memory({ clock })
  await store.open()
  await store.registerQueues([newQueue('media', { partitioned, globalConcurrency: partitioned ? 1 : null })])
  await store.commit([{ type: 'enqueue', commandId: 'c', runs }])
  return store
}

function runsOf(count: number, run: (n: number) => Partial<NewRun> = () => ({})): readonly NewRun[] {
  return Array.from({ length: count }, (_, n) => newRun(`run ${n}`, { queue: 'media', ...run(n) }))
}

/** Claims `count` runs, and settles them so. */
async function settled(store: Store, count: number, settlement: Settlement): Promise<Store> {
  const tokens = Array.from({ length: count }, (_, n) => `t ${n}`)
  const { runs } = await store.claim(claimRequest(tokens, { sources: [from('media', { room: count })] }))
  expect(runs).toHaveLength(count)
  const commands = runs.map(
    ({ run, token }): Command => ({ type: 'settle', runId: run.id, token, entries: [], settlement }),
  )
  await store.commit(commands)
  return store
}

/** The quickest of several rounds: what the machine does meanwhile makes a round slower, never quicker. */
async function quickestRound(store: Store, partitionKey: string | null = null): Promise<number> {
  const rounds: number[] = []
  for (let round = 0; round < 10; round++) {
    const ids = Array.from({ length: 40 }, (_, n) => `${round} ${n}`)
    const runs = ids.map((id) => newRun(id, { queue: 'media', partitionKey }))
    await store.commit([{ type: 'enqueue', commandId: `c ${round}`, runs }])
    const begun = performance.now()
    for (const id of ids) {
      const { runs: claimed } = await store.claim(claimRequest([id], { sources: SOURCES }))
      for (const { run, token } of claimed) await store.commit([end(run.id, token)])
      await store.nextExpiry()
      await store.cancelRequests('worker-1')
      await store.sweep({ definitions: [{ name: 'charge', retention: null }], limit: 100 })
    }
    rounds.push(performance.now() - begun)
  }
  return Math.min(...rounds)
}

function end(runId: string, token: string): Command {
  return { type: 'settle', runId, token, entries: [], settlement: { type: 'succeed', output: '1' } }
}

describe('a claim of the memory store', () => {
  const tomorrow: Settlement = { type: 'suspend', wakeAt: clock.now() + DAY_MS, children: [] }
  const now: Settlement = { type: 'suspend', wakeAt: clock.now(), children: [] }
  const oneEach = (n: number) => ({ partitionKey: `key ${n % LANES}` })

  it.each<readonly [string, () => Promise<Store>, string | null]>([
    ['claimable', () => storeOf(runsOf(MANY)), null],
    ['for others', () => storeOf(runsOf(MANY, () => ({ definition: 'other' }))), null],
    ['suspended', async () => settled(await storeOf(runsOf(MANY)), MANY, tomorrow), null],
    ['delayed', () => storeOf(runsOf(MANY, () => ({ due: { type: 'after', ms: DAY_MS } }))), null],
    ['finished', async () => settled(await storeOf(runsOf(MANY)), MANY, { type: 'succeed', output: '1' }), null],
    ['in ten thousand lanes at their limit', async () => fullLanes(runsOf(3 * LANES, oneEach)), 'free'],
    [
      'due in ten thousand lanes without room to resume',
      async () => {
        const store = await settled(await storeOf(runsOf(3 * LANES, oneEach), true), LANES, now)
        await store.changeQueue('media', { releaseWhileWaiting: true })
        await store.changeQueue('media', { globalConcurrency: 0 })
        return store
      },
      null,
    ],
  ])('costs no more with fifty thousand runs than with a thousand: %s', async (_, create, partitionKey) => {
    const few = await quickestRound(await storeOf(runsOf(1_000)))
    const many = await quickestRound(await create(), partitionKey)
    // One look at all runs, or all lanes, for each claim would be tens of milliseconds a round.
    expect(many).toBeLessThan(few * 5 + 3)
  })
})

async function fullLanes(runs: readonly NewRun[]): Promise<Store> {
  const store = await storeOf(runs, true)
  const tokens = Array.from({ length: LANES }, (_, n) => `t ${n}`)
  await store.claim(claimRequest(tokens, { sources: [from('media', { room: LANES })] }))
  return store
}
