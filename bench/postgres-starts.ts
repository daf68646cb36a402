/** Enqueueing and steps on PostgreSQL, with many callers. */
import { built } from './built.ts'
import { type Figure, figure, perSecond, plain } from './figure.ts'
import { closedLoop } from './measure.ts'
import { builtPostgres } from './postgres-built.ts'
import type { RawPostgres } from './raw-postgres.ts'

const { Client, Engine, queue, workflow } = await built()
const { postgres } = await builtPostgres()

const tenSteps = workflow('ten-steps', async (ctx, n: number) => {
  for (let step = 0; step < 10; step += 1) await ctx.step('step', async () => ({ n, step }))
  return n
})
const oneStep = workflow('one-step', async (ctx, n: number) => ctx.step('step', async () => n))

const ROUNDS = 3
const FEWEST_A_BATCH = 1_000

export async function enqueueing(url: string, raw: RawPostgres): Promise<Figure[]> {
  const client = new Client({ store: postgres(url) })
  const enqueue = (n: number): Promise<unknown> => client.start('noop', n, { queue: 'waiting' })
  const items = Array.from({ length: FEWEST_A_BATCH }, (_, n) => ({ input: n, options: { queue: 'waiting' } }))
  const single = { ratios: [] as number[], baseline: 0 }
  const coalesced = { ratios: [] as number[], baseline: 0 }
  const bulk = { ratios: [] as number[], baseline: 0, ours: 0 }
  let many = { perSecond: 0, loopDelayP99Ms: 0 }
  try {
    await closedLoop(50, 5_000, enqueue)
    await client.startMany('noop', items)
    for (let round = 0; round < ROUNDS; round += 1) {
      single.baseline = await raw.oneByOne(50, 5_000)
      coalesced.baseline = await raw.coalesced(50, 30_000)
      many = await closedLoop(50, 20_000, enqueue)
      single.ratios.push(many.perSecond / single.baseline)
      coalesced.ratios.push(many.perSecond / coalesced.baseline)
      bulk.baseline = await raw.multiRow(items.length, 40_000)
      bulk.ours = (await closedLoop(1, 20, () => client.startMany('noop', items))).perSecond * items.length
      bulk.ratios.push(bulk.ours / bulk.baseline)
    }
  } finally {
    await client.close()
  }
  const runs = perSecond(many.perSecond, 'runs')
  const inserts = perSecond(single.baseline, 'rows (raw, one a statement, 50 connections)')
  const together = perSecond(coalesced.baseline, 'rows (raw, the same callers coalesced)')
  const rows = perSecond(bulk.baseline, 'rows (raw, 1,000 a statement)')
  return [
    figure('enqueue, 50 callers', runs, inserts, single.ratios, 'at least 4'),
    figure('enqueue, 50 callers', runs, together, coalesced.ratios, 'at least 0.5'),
    delay(many.loopDelayP99Ms),
    figure('startMany of 1,000, one caller', perSecond(bulk.ours, 'runs'), rows, bulk.ratios, 'at least 0.5'),
  ]
}

/** Of this process's own workflows, which are claimed where they are started; and of others through a queue. */
export async function steps(url: string): Promise<Figure[]> {
  const definitions = [tenSteps, oneStep] as const
  const engine = new Engine({ store: postgres(url), definitions, queues: [queue('steps')] })
  await engine.launch()
  const ten = async (n: number): Promise<unknown> => (await engine.start(tenSteps, n)).result()
  const one = async (n: number): Promise<unknown> => (await engine.start(oneStep, n, { queue: 'steps' })).result()
  try {
    await closedLoop(200, 400, ten)
    await closedLoop(200, 1_000, one)
    const inFlight = []
    const queued = []
    for (let round = 0; round < ROUNDS; round += 1) {
      inFlight.push(await closedLoop(200, 2_000, ten))
      queued.push(await closedLoop(200, 8_000, one))
    }
    return [
      line('steps of 10-step workflows, 200 in flight', inFlight, { unit: 'steps', each: 10, floor: 8_000 }),
      delay(Math.max(...inFlight.map(({ loopDelayP99Ms }) => loopDelayP99Ms))),
      line('queued 1-step workflows, 200 in flight', queued, { unit: 'runs', each: 1, floor: 4_000 }),
      delay(Math.max(...queued.map(({ loopDelayP99Ms }) => loopDelayP99Ms))),
    ]
  } finally {
    await engine.shutdown()
  }
}

export function delay(ms: number): Figure {
  return plain('event loop delay meanwhile, p99', `${ms.toFixed(1)} ms`, 'below 25 ms')
}

function line(
  name: string,
  rounds: readonly { readonly perSecond: number }[],
  { unit, each, floor }: { readonly unit: string; readonly each: number; readonly floor: number },
): Figure {
  const ascending = rounds.map(({ perSecond: count }) => count * each).sort((a, b) => a - b)
  const middle = ascending[Math.floor(ascending.length / 2)] ?? Number.NaN
  const all = ascending.map((count) => Math.round(count).toLocaleString('en')).join(' / ')
  return plain(name, `${perSecond(middle, unit)} (${all})`, `at least ${perSecond(floor, unit)}`)
}
