/**
 * Queues on one SQLite file: enqueueing, draining, claiming beside much that is finished or waits, the way from an
 * enqueue to the start, and what an idle process costs. Against the bare driver in the same run on the same disk.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Handle } from '../src/index.ts'
import { built } from './built.ts'
import { type Figure, figure, perSecond, plain } from './figure.ts'
import { closedLoop, latencies, median, percentile } from './measure.ts'
import { fillFinished, rawSqlite } from './raw-sqlite.ts'
import { statements } from './statements.ts'
import { startWorker } from './worker.ts'

const { Client, Engine, workflow, queue, sqlite } = await built()

/** Comparable between processes of one host, and finer than Date. */
const instant = (): number => performance.timeOrigin + performance.now()
const noop = workflow('noop', async (_ctx, n: number) => n)
const stamp = workflow('stamp', async (_ctx, _n: number) => instant())

const ROUNDS = 3
const DRAINED = 20_000

export async function benchQueues(): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-bench-'))
  try {
    return [
      ...(await enqueueing(join(directory, 'enqueue.db'), join(directory, 'raw-enqueue.db'))),
      await draining(join(directory, 'drain.db'), join(directory, 'raw-drain.db')),
      ...(await claiming(join(directory, 'claim.db'))),
      await toStartHere(join(directory, 'here.db')),
      await toStartElsewhere(join(directory, 'elsewhere.db')),
      await idling(join(directory, 'idle.db')),
    ]
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function enqueueing(path: string, rawPath: string): Promise<Figure[]> {
  const client = new Client({ store: sqlite(path) })
  const raw = rawSqlite(rawPath)
  const enqueue = (n: number): Promise<unknown> => client.start('noop', n, { queue: 'bench' })
  const batch = Array.from({ length: 100 }, (_, n) => ({ input: n, options: { queue: 'bench' } }))
  const many = { ratios: [] as number[], ours: 0, raw: 0 }
  const alone = { ratios: [] as number[], ours: 0, raw: 0 }
  const bulk = { ratios: [] as number[], ours: 0, raw: 0 }
  try {
    await closedLoop(50, 5_000, enqueue)
    for (let round = 0; round < ROUNDS; round += 1) {
      many.raw = await median(3, () => raw.insert(50, 200))
      many.ours = (await closedLoop(50, 20_000, enqueue)).perSecond
      many.ratios.push(many.ours / many.raw)
      alone.raw = await median(3, () => raw.insert(1, 500))
      alone.ours = (await closedLoop(1, 1_000, enqueue)).perSecond
      alone.ratios.push(alone.ours / alone.raw)
      bulk.raw = await median(3, () => raw.insert(100, 200))
      bulk.ours = (await closedLoop(1, 200, () => client.startMany('noop', batch))).perSecond * batch.length
      bulk.ratios.push(bulk.ours / bulk.raw)
    }
  } finally {
    await client.close()
    raw.close()
  }
  const line = (name: string, of: typeof many, rows: string, floor: string): Figure =>
    figure(name, perSecond(of.ours, 'runs'), perSecond(of.raw, `rows (raw, ${rows} a transaction)`), of.ratios, floor)
  return [
    line('enqueue, 50 callers', many, '50', 'at least 0.4'),
    line('enqueue, one caller', alone, '1', 'at least 0.7'),
    line('startMany of 100, one caller', bulk, '100', 'at least 0.3'),
  ]
}

async function draining(path: string, rawPath: string): Promise<Figure> {
  const raw = rawSqlite(rawPath)
  const store = sqlite(path)
  const client = new Client({ store })
  const items = Array.from({ length: 1_000 }, (_, n) => ({ input: n, options: { queue: 'bench' } }))
  const ratios: number[] = []
  let ours = 0
  let baseline = 0
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      baseline = await median(3, () => raw.claimAndDelete(100, DRAINED))
      const handles = []
      for (let n = 0; n < DRAINED; n += items.length) handles.push(...(await client.startMany('noop', items)))
      const engine = new Engine({ store, definitions: [noop], queues: [queue('bench')] })
      const begin = performance.now()
      await engine.launch()
      await Promise.all(handles.map((handle) => handle.result()))
      ours = DRAINED / ((performance.now() - begin) / 1_000)
      await engine.shutdown()
      ratios.push(ours / baseline)
    }
  } finally {
    await client.close()
    raw.close()
  }
  const what = perSecond(baseline, 'rows (raw, claimed and deleted in hundreds)')
  return figure(
    `drain of ${DRAINED.toLocaleString('en')} no-op runs`,
    perSecond(ours, 'runs'),
    what,
    ratios,
    'at least 0.12',
  )
}

/** Of one claim of one run, with nothing else there; beside a million finished runs; and before 100,000 that wait. */
async function claiming(path: string): Promise<Figure[]> {
  const store = sqlite(path)
  const client = new Client({ store })
  await client.start('noop', 0, { queue: 'bench' })
  const measure = async (): Promise<number> => {
    const tokens = Array.from({ length: 200 }, (_, n) => `${performance.now()}-${n}`)
    const definitions = [{ name: 'noop', kind: 'workflow', maxRecoveries: 50, timeoutMs: null }] as const
    const sources = [{ queue: 'bench', leaseMs: 60_000, room: 1, lanes: null }] as const
    const items = tokens.map((_, n) => ({ input: n, options: { queue: 'bench' } }))
    await client.startMany('noop', items)
    const times = await latencies(tokens.length, async (n) => {
      const token = tokens[n] ?? ''
      const { runs } = await store.claim({ owner: 'bench', tokens: [token], definitions, version: null, sources })
      if (runs.length !== 1) throw new Error('nothing was claimed')
    })
    return percentile(times, 0.5)
  }
  try {
    const empty = await measure()
    await store.close()
    fillFinished(path, 1_000_000)
    await store.open()
    const finished = await measure()
    for (let n = 0; n < 100; n += 1) {
      await client.startMany(
        'noop',
        Array.from({ length: 1_000 }, () => ({ input: 0, options: { queue: 'bench' } })),
      )
    }
    const waiting = await measure()
    const ms = (value: number): string => `${value.toFixed(3)} ms`
    return [
      figure('claim, 1 M finished runs, p50', ms(finished), `${ms(empty)} (none)`, [finished / empty], 'about 1'),
      figure('claim, and 100,000 waiting, p50', ms(waiting), `${ms(empty)} (none)`, [waiting / empty], 'about 1'),
    ]
  } finally {
    await client.close()
  }
}

/** From the call of `start` to the first line of the body, wherever that runs. */
async function toStart(start: (n: number) => Promise<Handle<number>>): Promise<number> {
  const samples: number[] = []
  for (let n = 0; n < 300; n += 1) {
    const called = instant()
    samples.push((await (await start(n)).result()) - called)
  }
  return percentile(
    samples.sort((a, b) => a - b),
    0.5,
  )
}

async function toStartHere(path: string): Promise<Figure> {
  const engine = new Engine({ store: sqlite(path), definitions: [stamp], queues: [queue('bench')] })
  await engine.launch()
  try {
    const ms = await toStart((n) => engine.start(stamp, n, { queue: 'bench' }))
    return plain('enqueue to start, one process, p50', `${ms.toFixed(2)} ms`, 'below 2 ms')
  } finally {
    await engine.shutdown()
  }
}

async function toStartElsewhere(path: string): Promise<Figure> {
  const client = new Client<readonly [typeof stamp]>({ store: sqlite(path) })
  const worker = await startWorker(path)
  try {
    const ms = await toStart((n) => client.start('stamp', n, { queue: 'bench' }))
    return plain('enqueue to start, another process, p50', `${ms.toFixed(1)} ms`, 'below 40 ms')
  } finally {
    await worker.stop()
    await client.close()
  }
}

/** Store calls of an engine with ten queues and nothing to do. */
async function idling(path: string): Promise<Figure> {
  const queues = Array.from({ length: 10 }, (_, n) => queue(`bench-${n}`))
  const store = sqlite(path)
  const engine = new Engine({ store, definitions: [noop], queues })
  await engine.launch()
  try {
    await pause(2_000)
    const before = statements()
    await pause(10_000)
    const perSecondIdle = (statements() - before) / 10
    return plain('statements of an idle process with ten queues', `${perSecondIdle.toFixed(1)}/s`, 'below 5/s')
  } finally {
    await engine.shutdown()
  }
}
