/** The queues of engines at work: who runs how many of what, in which order. */
import { describe, expect, it } from 'vitest'
import { Client, Engine, type Queue, queue, type StartOptions, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS, type Place } from './places.ts'
import { door, ended, notebook, until } from './support.ts'

const logger = silent

/** Counts what runs at the same time, by a key. */
class Gauge {
  readonly running = new Map<string, number>()
  readonly most = new Map<string, number>()
  readonly order: string[] = []

  async during<T>(key: string, work: () => Promise<T>): Promise<T> {
    const now = (this.running.get(key) ?? 0) + 1
    this.order.push(key)
    this.running.set(key, now)
    this.most.set(key, Math.max(this.most.get(key) ?? 0, now))
    try {
      return await work()
    } finally {
      this.running.set(key, (this.running.get(key) ?? 0) - 1)
    }
  }
}

describe.each(KINDS)('queues at work on $kind', ({ place }) => {
  const busy = (gauge: Gauge) =>
    workflow('busy', async (ctx, key: string) =>
      gauge.during(key, async () => {
        for (const step of ['a', 'b', 'c']) await ctx.step(step, async () => {})
        return key
      }),
    )
  const each = (keys: readonly string[], options: (key: string, n: number) => StartOptions) =>
    keys.map((input, n) => ({ input, options: options(input, n) }))

  async function engines(count: number, home: Place, gauge: Gauge, queues: readonly Queue[]): Promise<Engine[]> {
    const made = Array.from({ length: count }, () =>
      ended(new Engine({ store: home.connect(), definitions: [busy(gauge)], queues, logger })),
    )
    await Promise.all(made.map((engine) => engine.launch()))
    return made
  }

  it('the media queue of the guide: two at a time in this process', async () => {
    const gauge = new Gauge()
    const [engine] = await engines(1, place(), gauge, [queue('media', { workerConcurrency: 2 })])
    const runs = await engine?.startMany(
      'busy',
      each(Array(12).fill('x'), (_key, n) => ({ id: `${n}`, queue: 'media' })),
    )
    expect(await Promise.all((runs ?? []).map((run) => run.result()))).toEqual(Array(12).fill('x'))
    expect(gauge.most.get('x')).toBe(2)
  })

  it('Q11 a global limit holds across engines, while urgent ones arrive', async () => {
    const gauge = new Gauge()
    const queues = [queue('media', { globalConcurrency: 2, priorityEnabled: true })]
    const three = await engines(3, place(), gauge, queues)
    const starts = Array.from({ length: 60 }, async (_, n) =>
      three[n % 3]?.start('busy', 'x', { queue: 'media', priority: n % 7 === 0 ? -n : n }),
    )
    for (const run of await Promise.all(starts)) expect(await run?.result()).toBe('x')
    expect(gauge.most.get('x')).toBe(2)
    expect(gauge.order).toHaveLength(60)
  })

  it('Q12 Q13 a rate limit bounds starts in every window; a requeue is a start, a resume is none', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', async (ctx, fail: boolean) => {
      await ctx.sleep(2_000)
      if (fail) throw new Error('again')
    })
    const queues = [queue('api', { rateLimiter: { limit: 3, period: '1m' } })]
    const home = place(clock)
    const made = [0, 1].map(() => ended(new Engine({ store: home.connect(), definitions: [nap], queues, logger })))
    for (const engine of made) await engine.launch()
    const [engine] = made
    for (let n = 0; n < 10; n += 1) await engine?.start(nap, n === 0, { id: `r${n}`, queue: 'api' })
    const starts = async (): Promise<number[]> => {
      const attempts = await Promise.all(Array.from({ length: 10 }, async (_, n) => engine?.runs.attempts(`r${n}`)))
      const all = attempts
        .flatMap((of) => of ?? [])
        .flatMap(({ outcome, startedAt }) => (outcome === 'requeued' ? [] : (startedAt ?? [])))
      return all.map((start) => start.getTime()).sort((a, b) => a - b)
    }
    await clock.advance('10s')
    expect(await starts()).toHaveLength(3)
    expect(await engine?.handle('r1').status()).toBe('SUCCESS')
    expect(await engine?.requeue('r0')).toBe(true)
    await clock.advance('10m')
    const all = await starts()
    expect(all).toHaveLength(11)
    for (const [index, start] of all.entries()) {
      const third = all[index + 3]
      if (third !== undefined) expect(third - start).toBeGreaterThanOrEqual(60_000)
    }
    // The requeued one had kept its place.
    expect((await engine?.runs.get('r0'))?.startedAt?.getTime()).toBe(all[3])
  })

  it('Q16 lower priority values go first, equal ones as they came; elsewhere priorities take no effect', async () => {
    const order = new Map<string, string[]>()
    const noted = workflow('noted', async (_ctx, [on, name]: readonly [string, string]) => {
      order.set(on, [...(order.get(on) ?? []), name])
    })
    const queues = [
      queue('heeds', { workerConcurrency: 1, priorityEnabled: true }),
      queue('fifo', { workerConcurrency: 1 }),
    ]
    const log = notebook()
    const engine = ended(new Engine({ store: place().connect(), definitions: [noted], queues, logger: log }))
    const runs = []
    for (const on of ['heeds', 'fifo']) {
      for (const [name, priority] of Object.entries({ a: 5, b: 0, c: -1, d: 0, e: 5, f: -1 })) {
        runs.push(await engine.start(noted, [on, name] as const, { queue: on, priority }))
      }
    }
    await engine.launch()
    for (const run of runs) await run.result()
    expect(order.get('heeds')).toEqual(['c', 'f', 'b', 'd', 'a', 'e'])
    expect(order.get('fifo')).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  it('Q10 Q20 Q21 on a partitioned queue every limit is of a key; without a key nothing runs, and a warning says so', async () => {
    const gauge = new Gauge()
    const log = notebook()
    const queues = [queue('customers', { partitioned: true, workerConcurrency: 1 })]
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [busy(gauge)], queues, logger: log }))
    await engine.launch()
    const keyless = await engine.start('busy', 'nobody', { queue: 'customers' })
    const keys = Array.from({ length: 30 }, (_, n) => (n < 20 ? 'greedy' : `k${n}`))
    const runs = await engine.startMany(
      'busy',
      each(keys, (partitionKey) => ({ queue: 'customers', partitionKey })),
    )
    await Promise.all(runs.map((run) => run.result()))
    expect([...gauge.most.values()]).toEqual([...gauge.most.keys()].map(() => 1))
    // The others had their turn while the greedy one had its second.
    expect(gauge.order.slice(0, 14).filter((key) => key !== 'greedy')).toHaveLength(10)
    expect(await keyless.status()).toBe('ENQUEUED')
    expect(await engine.queues.stats('customers')).toMatchObject({ enqueued: 1, keyless: 1 })
    expect(log.lines.filter(({ fields }) => fields?.['runId'] === keyless.id)).toMatchObject([
      { level: 'warn', fields: { queue: 'customers' } },
    ])
  })

  it('one at a time for each customer: a run that sleeps holds its turn, unless the queue lets it go', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))
    const limit = { partitioned: true, globalConcurrency: 1 }
    const queues = [queue('held', limit), queue('let go', { ...limit, releaseWhileWaiting: true })]
    const engine = ended(new Engine({ store: home.connect(), definitions: [nap], queues, logger }))
    await engine.launch()
    const statuses = async (on: string): Promise<string[]> => {
      const { runs } = await engine.runs.list({ queue: on })
      return runs.map(({ partitionKey, status }) => `${partitionKey} ${status}`).sort()
    }
    for (const on of ['held', 'let go']) {
      for (const partitionKey of ['a', 'a', 'b']) await engine.start(nap, undefined, { queue: on, partitionKey })
    }
    await clock.advance('1m')
    expect(await statuses('held')).toEqual(['a ENQUEUED', 'a WAITING', 'b WAITING'])
    expect(await statuses('let go')).toEqual(['a WAITING', 'a WAITING', 'b WAITING'])
    await clock.advance('1h')
    expect(await statuses('held')).toEqual(['a SUCCESS', 'a WAITING', 'b SUCCESS'])
    expect(await statuses('let go')).toEqual(['a SUCCESS', 'a SUCCESS', 'b SUCCESS'])
  })

  it('Q15 three engines and a client: each run once, on each queue', async () => {
    const home = place()
    const gauge = new Gauge()
    await engines(3, home, gauge, [queue('media'), queue('email', { workerConcurrency: 1 })])
    const client = new Client({ store: home.connect(), logger })
    const keys = Array.from({ length: 90 }, (_, n) => `r${n}`)
    const queues = ['media', 'email', undefined]
    const runs = await client.startMany(
      'busy',
      each(keys, (_key, n) => {
        const on = queues[n % 3]
        return on === undefined ? {} : { queue: on }
      }),
    )
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(keys)
    expect([...gauge.order].sort()).toEqual([...keys].sort())
    await client.close()
  })

  it('suspended runs hold no place in this process, and go on before others start', async () => {
    const clock = new MockClock()
    const order: string[] = []
    const opened = door()
    const work = workflow('work', async (ctx, name: string) => {
      order.push(`${name} begins`)
      if (name === 'sleeper') await ctx.sleep('1m')
      if (name === 'holder') await ctx.step('hold', () => opened.opened)
      order.push(`${name} ends`)
    })
    const queues = [queue('media', { workerConcurrency: 1 })]
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [work], queues, logger }))
    await engine.launch()
    const on = { queue: 'media' } as const
    await engine.start(work, 'sleeper', on)
    await clock.advance('1s')
    await engine.start(work, 'holder', on)
    await until(() => order.includes('holder begins'))
    const late = await engine.start(work, 'late', on)
    await clock.advance('2m')
    opened.open()
    await late.result()
    expect(order.filter((line) => line !== 'sleeper begins')).toEqual([
      ...['holder begins', 'holder ends', 'sleeper ends', 'late begins', 'late ends'],
    ])
  })
})
