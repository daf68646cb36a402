/** Draining a queue on PostgreSQL, the way from an enqueue to the start elsewhere, and what an idle process costs. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { built } from './built.ts'
import { type Figure, figure, perSecond, plain } from './figure.ts'
import { latencies, percentile } from './measure.ts'
import { builtPostgres } from './postgres-built.ts'
import type { BenchServer, Counts } from './postgres-server.ts'
import { delay } from './postgres-starts.ts'
import type { RawPostgres } from './raw-postgres.ts'

const { Client, Engine, queue, workflow } = await built()
const { postgres } = await builtPostgres()

const noop = workflow('noop', async (_ctx, n: number) => n)
const stamp = workflow('stamp', async (_ctx, _n: number) => instant())

/** Comparable between processes of one host, and finer than Date. */
const instant = (): number => performance.timeOrigin + performance.now()

const ROUNDS = 3
const DRAINED = 20_000
const IDLE_MS = 10_000

export async function draining(server: BenchServer, raw: RawPostgres): Promise<Figure[]> {
  const store = postgres(server.url)
  const client = new Client({ store })
  const items = Array.from({ length: 1_000 }, (_, n) => ({ input: n, options: { queue: 'bench' } }))
  const ratios: number[] = []
  let [ours, baseline, loopDelayMs] = [0, 0, 0]
  let before: Counts | undefined
  let after: Counts | undefined
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      baseline = await raw.claimAndUpdate(100, DRAINED)
      before = await server.counts()
      const handles = []
      for (let n = 0; n < DRAINED; n += items.length) handles.push(...(await client.startMany('noop', items)))
      const loopDelay = monitorEventLoopDelay({ resolution: 1 })
      loopDelay.enable()
      const engine = new Engine({ store, definitions: [noop], queues: [queue('bench')] })
      const begin = performance.now()
      await engine.launch()
      await Promise.all(handles.map((handle) => handle.result()))
      ours = DRAINED / ((performance.now() - begin) / 1_000)
      loopDelay.disable()
      loopDelayMs = Math.max(loopDelayMs, loopDelay.percentile(99) / 1e6)
      await engine.shutdown()
      after = await server.counts()
      ratios.push(ours / baseline)
    }
  } finally {
    await client.close()
  }
  const rows = perSecond(baseline, 'rows (raw, claimed and updated in hundreds)')
  const name = `drain of ${DRAINED.toLocaleString('en')} no-op runs`
  const drain = figure(name, perSecond(ours, 'runs'), rows, ratios, 'at least 0.4')
  const counts = before === undefined || after === undefined ? [] : [perRun(before, after)]
  return [drain, delay(loopDelayMs), ...counts]
}

function perRun(before: Counts, after: Counts): Figure {
  const each = (of: keyof Counts): number => (after[of] - before[of]) / DRAINED
  const wal = `${Math.round(each('walBytes')).toLocaleString('en')} bytes of WAL`
  const rest = `${each('commits').toFixed(3)} commits, ${each('deadRows').toFixed(2)} dead rows`
  return plain('an enqueued and drained run costs', `${wal}, ${rest}`, '')
}

/** From the call of `start` to the first line of the body, in another process. */
export async function toStartElsewhere(url: string): Promise<Figure> {
  const client = new Client<readonly [typeof stamp]>({ store: postgres(url) })
  const child = fork(new URL('children/postgres-worker.ts', import.meta.url), [url], { execArgv: ['--import', 'tsx'] })
  await once(child, 'message')
  const exit = once(child, 'exit')
  try {
    const samples: number[] = []
    await latencies(300, async (n) => {
      // Both are idle before each, as the figure is about waking up.
      await pause(10)
      const called = instant()
      samples.push((await (await client.start('stamp', n, { queue: 'bench' })).result()) - called)
    })
    samples.sort((a, b) => a - b)
    const [middle, most] = [percentile(samples, 0.5).toFixed(1), percentile(samples, 0.95).toFixed(1)]
    return plain('enqueue to start, another process, p50 (p95)', `${middle} ms (${most} ms)`, 'below 8 ms')
  } finally {
    child.send('stop')
    await exit
    await client.close()
  }
}

/** Statements that the server executes for an engine with ten queues and nothing to do. */
export async function idling(server: BenchServer): Promise<Figure> {
  await server.countStatements()
  const queues = Array.from({ length: 10 }, (_, n) => queue(`bench-${n}`))
  const engine = new Engine({ store: postgres(server.url), definitions: [noop], queues })
  await engine.launch()
  try {
    await pause(2_000)
    const before = await server.statements()
    await pause(IDLE_MS)
    const each = (((await server.statements()) - before) / IDLE_MS) * 1_000
    return plain('statements of an idle process with ten queues', `${each.toFixed(1)}/s`, 'below 5/s')
  } finally {
    await engine.shutdown()
  }
}
