/**
 * The embedded engine on one SQLite file, against the bare driver in the same run on the same disk. Every figure is
 * a ratio as well: absolute ones depend on the machine, and on who else uses it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine as EngineOf } from '../src/index.ts'
import type { Store } from '../src/store/contract.ts'
import { built } from './built.ts'
import { type Figure, figure, perSecond, plain } from './figure.ts'
import { closedLoop, latencies, median, percentile } from './measure.ts'
import { type RawSqlite, rawSqlite } from './raw-sqlite.ts'

const { Engine, workflow, sqlite } = await built()

const noop = workflow('noop', async (_ctx, n: number) => n)
const tenSteps = workflow('ten-steps', async (ctx, n: number) => {
  for (let step = 0; step < 10; step += 1) await ctx.step('step', async () => ({ n, step }))
  return n
})

type Benched = EngineOf<readonly [typeof noop, typeof tenSteps]>

const ROUNDS = 3

export async function benchSqlite(): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-bench-'))
  const raw = rawSqlite(join(directory, 'raw.db'))
  const commits = countingCommits(sqlite(join(directory, 'engine.db')))
  const engine = new Engine({ store: commits.store, definitions: [noop, tenSteps] })
  await engine.launch()
  try {
    await closedLoop(50, 3_000, async (n) => (await engine.start(noop, n)).result())
    return [
      ...(await startsThatEndAtOnce(engine, raw)),
      ...(await stepsInFlight(engine, raw)),
      await oneAlone(engine, raw),
      ...(await commitsPerRun(engine, commits)),
    ]
  } finally {
    await engine.shutdown()
    raw.close()
    rmSync(directory, { recursive: true })
  }
}

async function startsThatEndAtOnce(engine: Benched, raw: RawSqlite): Promise<Figure[]> {
  const ratios: number[] = []
  let last = { perSecond: 0, loopDelayP99Ms: 0 }
  let baseline = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    baseline = await median(3, () => raw.insert(50, 200))
    last = await closedLoop(50, 15_000, (n) => engine.start(noop, n))
    ratios.push(last.perSecond / baseline)
  }
  return [
    figure(
      'starts of runs that end at once, 50 callers',
      perSecond(last.perSecond, 'runs'),
      perSecond(baseline, 'rows (raw, 50 a transaction)'),
      ratios,
      'at least 0.2',
    ),
    delay('event loop delay meanwhile, p99', last.loopDelayP99Ms),
  ]
}

async function stepsInFlight(engine: Benched, raw: RawSqlite): Promise<Figure[]> {
  const ratios: number[] = []
  let last = { perSecond: 0, loopDelayP99Ms: 0 }
  let baseline = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    baseline = await median(3, () => raw.insert(100, 200))
    last = await closedLoop(200, 3_000, async (n) => (await engine.start(tenSteps, n)).result())
    ratios.push((last.perSecond * 10) / baseline)
  }
  return [
    figure(
      'steps of 10-step workflows, 200 in flight',
      perSecond(last.perSecond * 10, 'steps'),
      perSecond(baseline, 'rows (raw, 100 a transaction)'),
      ratios,
      'at least 0.1',
    ),
    delay('event loop delay meanwhile, p99', last.loopDelayP99Ms),
  ]
}

async function oneAlone(engine: Benched, raw: RawSqlite): Promise<Figure> {
  const ratios: number[] = []
  let alone = 0
  let baseline = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    baseline = await median(20, () => raw.oneByOne(12))
    alone = percentile(await latencies(100, async (n) => (await engine.start(tenSteps, n)).result()), 0.5)
    ratios.push(alone / baseline)
  }
  return figure(
    'one 10-step workflow alone, p50',
    `${alone.toFixed(2)} ms`,
    `${baseline.toFixed(2)} ms (raw, 12 commits of one row)`,
    ratios,
    'at most 1.5',
  )
}

async function commitsPerRun(engine: Benched, commits: Counting): Promise<Figure[]> {
  const count = async (callers: number, total: number): Promise<string> => {
    const before = commits.count()
    await closedLoop(callers, total, async (n) => (await engine.start(tenSteps, n)).result())
    return ((commits.count() - before) / total).toFixed(2)
  }
  return [
    {
      name: 'commits of a 10-step run, alone',
      value: await count(1, 50),
      baseline: '12 (start, 10 steps, end)',
      ratio: '',
      floor: '',
    },
    {
      name: 'commits of a 10-step run, 200 in flight',
      value: await count(200, 2_000),
      baseline: '',
      ratio: '',
      floor: '',
    },
  ]
}

interface Counting {
  readonly store: Store
  count(): number
}

function countingCommits(store: Store): Counting {
  let commits = 0
  const commit = store.commit.bind(store)
  store.commit = (commands) => {
    commits += 1
    return commit(commands)
  }
  return { store, count: () => commits }
}

function delay(name: string, ms: number): Figure {
  return plain(name, `${ms.toFixed(1)} ms`, 'below 25 ms')
}
