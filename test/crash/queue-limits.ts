/** Limits under real races: several processes claim from one store at once (Q14, C-01, C-05). */
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Run } from '../../src/index.ts'
import { accountOf, beginnings, tightestWindow } from './queue-account.ts'
import { claimsIn, claimsOf, lagOf, mostAtOnce, runsOf, startsOf } from './queue-claims.ts'
import type { QueuePlace } from './queue-place.ts'

interface Filling {
  readonly ms?: number
  readonly held?: boolean
  readonly priority?: number
  /** The number of the first. */
  readonly from?: number
}

/** Starts `count` runs at once. */
async function fill({ client }: QueuePlace, lane: string, count: number, filling: Filling = {}): Promise<void> {
  const { ms = 0, held = false, priority = 0, from = 0 } = filling
  const [queue = '', partitionKey] = lane.split('/')
  const runs = Array.from({ length: count }, (_, n) => ({
    input: { ms, ...(held ? { hold: 'in a step' } : {}) },
    options: { id: `${lane}.${from + n}`, queue, priority, ...(partitionKey === undefined ? {} : { partitionKey }) },
  }))
  await client.startMany('task', runs)
}

export interface LimitCounts {
  /** Runs that a rate limit holds back, with each version, and with each urgency. */
  readonly waiting: number
  readonly few: number
  readonly many: number
  /** In the instant in which a run is created it can be claimed: nothing else happens meanwhile. */
  readonly serial: boolean
}

export function testLimits(newPlace: () => QueuePlace, { waiting, few, many, serial }: LimitCounts): void {
  it('a rate limit only, eight claimers in four processes, thousands of runs waiting: never above it (Q14a, C-01)', async () => {
    const SECOND = { limit: 5, period: 1_000 }
    const BRISK = { limit: 3, period: 100 }
    /** Long enough for five windows of the one, and forty of the other. */
    const WATCHED_MS = 4_200
    const here = newPlace()
    const queues = { second: { rateLimiter: SECOND }, brisk: { rateLimiter: BRISK } }
    for (let from = 0; from < waiting; from += 1_000) await fill(here, 'second', 1_000, { from })
    await fill(here, 'brisk', 1_000)
    const workers = Array.from({ length: 4 }, () => here.load({ queues, engines: 2 }))
    await Promise.all(workers.map((worker) => worker.says('loaded')))
    for (const worker of workers) worker.tell('launch')
    await Promise.all(workers.map((worker) => worker.says('launched')))
    await setTimeout(WATCHED_MS)
    await Promise.all(workers.map((worker) => here.kill(worker)))

    const notes = here.journal.read()
    const account = accountOf(notes)
    expect(account.faults).toEqual([])
    const claims = await claimsOf(here.client, ['second', 'brisk'])
    for (const [lane, { limit, period }] of Object.entries({ second: SECOND, brisk: BRISK })) {
      const starts = startsOf(claimsIn(lane, claims))
      expect(tightestWindow(starts, limit)).toBeGreaterThanOrEqual(period)
      const lag = lagOf(notes, claimsIn(lane, claims))
      expect(tightestWindow(beginnings(notes, lane), limit)).toBeGreaterThan(period - lag)
      console.log(`${lane}: ${starts.length} starts; from claim to first line ${lag.toFixed(1)} ms at most`)
      // It was the limit that held them back: most of those that it allows have started.
      expect(starts.length).toBeGreaterThan(0.7 * limit * (WATCHED_MS / period))
    }
    expect(new Set([...account.begins.values()].flat()).size).toBeGreaterThan(1)
  })

  it('a global limit of 2, two versions that see none of each other’s runs: never above it (Q14b)', async () => {
    const EACH = few
    const here = newPlace()
    // Each version binds runs to itself, and dies with them in hand.
    for (const [part, version] of ['v1', 'v2'].entries()) {
      await fill(here, 'bound', EACH, { ms: 4, held: true, from: part * EACH })
      const binder = await here.worker({ version, queues: { bound: {} }, holds: true })
      await binder.saysTimes(EACH, 'holding')
      await here.kill(binder)
    }
    await fill(here, 'bound', EACH, { ms: 4, from: 2 * EACH })
    const mark = here.journal.read().length
    const queues = { bound: { globalConcurrency: 2, configVersion: 1 } }
    const workers = ['v1', 'v2'].map((version) => here.load({ version, queues }))
    await Promise.all(workers.map((worker) => worker.says('loaded')))
    for (const worker of workers) worker.tell('launch')
    await here.drained(['bound'])

    const account = accountOf(here.journal.read())
    expect(account.faults).toEqual([])
    expect(account.ended.size).toBe(3 * EACH)
    expect(accountOf(here.journal.read().slice(mark)).peaks.get('bound')).toBe(2)
    const claims = await claimsOf(here.client, ['bound'])
    expect(mostAtOnce(claims.filter(({ outcome }) => outcome === 'succeeded'))).toBe(2)
    // Each went on with its own.
    for (const [part, worker] of workers.entries()) {
      const own = [...account.begins].filter(([, pids]) => pids.length === 2 && pids[1] === worker.pid)
      const numbers = own.map(([runId]) => Number(runId.split('.')[1]))
      expect(numbers.filter((n) => n < part * EACH || n >= (part + 1) * EACH)).toEqual([])
      expect(own).toHaveLength(EACH)
    }
  })

  it('a global limit of 2 while more urgent runs arrive: never above it, and the urgent go first (Q14c, Q16)', async () => {
    const BACKLOG = many
    const URGENT = many
    const here = newPlace()
    const queues = { ranked: { globalConcurrency: 2, priorityEnabled: true } }
    await fill(here, 'ranked', BACKLOG, { ms: 3, priority: URGENT })
    const workers = Array.from({ length: 3 }, () => here.load({ queues }))
    await Promise.all(workers.map((worker) => worker.says('loaded')))
    for (const worker of workers) worker.tell('launch')
    // Each more urgent than all before, and while the workers are about to claim others.
    const acceptedAt = new Map<string, number>()
    for (let n = 0; n < URGENT; n += 1) {
      await fill(here, 'ranked', 1, { ms: 3, priority: URGENT - 1 - n, from: BACKLOG + n })
      acceptedAt.set(`ranked.${BACKLOG + n}`, Date.now())
      await setTimeout(Math.random() * 8)
    }
    await here.drained(['ranked'])

    const account = accountOf(here.journal.read())
    expect(account.faults).toEqual([])
    expect(account.ended.size).toBe(BACKLOG + URGENT)
    expect(account.peaks.get('ranked')).toBe(2)
    const claims = await claimsOf(here.client, ['ranked'])
    expect(mostAtOnce(claims)).toBe(2)
    const runs: Run[] = []
    for await (const run of runsOf(here.client.runs, 'ranked')) runs.push(run)
    let overtaking = 0
    const claimsBefore = runs.map((other) => {
      const claimable = serial ? other.createdAt.getTime() : (acceptedAt.get(other.id) ?? Number.POSITIVE_INFINITY)
      const passing = new Set<number>()
      for (const { priority, startedAt = new Date(0) } of runs) {
        if (other.priority >= priority || other.startedAt === undefined) continue
        if (other.startedAt < startedAt) overtaking += 1
        else if (claimable < startedAt.getTime() && startedAt < other.startedAt) passing.add(startedAt.getTime())
      }
      return passing.size
    })
    // A claim that was under way when a run was committed has not seen it; the next one has.
    expect(Math.max(...claimsBefore)).toBeLessThanOrEqual(serial ? 0 : 1)
    expect(overtaking).toBeGreaterThan(URGENT)
  })

  it('after all processes are killed at once, three runs of one key run one at a time (C-05)', async () => {
    const here = newPlace()
    const queues = { serial: { partitioned: true, globalConcurrency: 1 } }
    await fill(here, 'serial/k', 3, { ms: 40, held: true })
    const doomed = await Promise.all([1, 2].map(() => here.worker({ queues, holds: true })))
    await Promise.race(doomed.map((worker) => worker.says('holding serial/k.0')))
    await Promise.all(doomed.map((worker) => worker.freeze()))
    for (const { pid } of doomed) here.journal.note('killed', '', '', pid)
    await Promise.all(doomed.map((worker) => worker.kill()))

    const survivors = await Promise.all([1, 2, 3].map(() => here.worker({ queues })))
    await here.drained(['serial'])
    const account = accountOf(here.journal.read())
    expect(account.faults).toEqual([])
    expect([...account.ended].sort()).toEqual(['serial/k.0', 'serial/k.1', 'serial/k.2'])
    expect(account.peaks.get('serial/k')).toBe(1)
    expect(mostAtOnce(await claimsOf(here.client, ['serial']))).toBe(1)
    expect(survivors.every((worker) => worker.alive)).toBe(true)
  })
}
