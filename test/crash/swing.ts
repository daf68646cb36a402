/**
 * Four workers in full swing on a PostgreSQL that is given trouble, and what they must have done in the end: each run
 * once, as no process died and no lease was lost, and within the limits.
 */
import { expect } from 'vitest'
import { until } from '../api/engine/support.ts'
import type { Child } from './processes.ts'
import { accountOf } from './queue-account.ts'
import { startProgram } from './queue-children.ts'
import { claimsIn, claimsOf, mostAtOnce } from './queue-claims.ts'
import { type QueuePlace, type Queues, queuePlace } from './queue-place.ts'

const WORKERS = 4
const AHEAD = 50
/** What a process says of one period of trouble: at its beginning, for each of the few that notice it, and at its end. */
const LINES_OF_TROUBLE = 12
const TROUBLE = /^(warn|error) /

const WIDE = 4
const KEYS = ['a', 'b', 'c']
const queues: Queues = {
  wide: { globalConcurrency: WIDE },
  keyed: { partitioned: true, globalConcurrency: 1 },
  open: {},
}
const LANES = ['wide', ...KEYS.map((key) => `keyed/${key}`), 'open', 'open']

export interface Swing {
  readonly here: QueuePlace
  readonly workers: readonly Child[]
  /** How many runs have been settled. */
  settled(): number
  /** How often a worker has said that something is wrong. */
  troubles(): number
  /** Resolves when so many runs more have been settled. */
  progress(count: number): Promise<void>
  /** Starts what is missing to `total` runs, and holds what happened in so many periods of trouble against the promise. */
  end(total: number, periods: number): Promise<void>
}

/** Four workers, and a producer that keeps some runs ahead of them. */
export async function fullSwing(spec: string): Promise<Swing> {
  const here = queuePlace(spec)
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => here.worker({ queues })))
  const producer = startProgram('producer', here.store, here.log, 'p', LANES.join(' '))
  let asked = 0
  const more = (count: number): void => {
    asked += count
    producer.tell(`more ${count}`)
  }
  const settled = (): number => here.journal.of('settled').length
  const progress = async (count: number): Promise<void> => {
    const target = settled() + count
    more(Math.max(0, target + AHEAD - asked))
    await until(() => settled() >= target, `${count} settlements more`, 60_000)
  }
  await progress(20)
  return {
    ...{ here, workers, settled, progress },
    troubles: () => workers.reduce((sum, { lines }) => sum + troublesIn(lines), 0),
    end: async (total, periods) => {
      more(Math.max(1, total - asked))
      await until(() => here.journal.of('accepted').length === asked, 'the last acceptance', 60_000)
      await here.drained(Object.keys(queues))
      await expectOrderlyEnds(workers)
      await expectPromise(here, asked)
      for (const { lines } of workers) expect(troublesIn(lines)).toBeLessThanOrEqual(periods * LINES_OF_TROUBLE)
      expect(producer.alive).toBe(true)
    },
  }
}

function troublesIn(lines: readonly string[]): number {
  return lines.filter((line) => TROUBLE.test(line)).length
}

async function expectOrderlyEnds(workers: readonly Child[]): Promise<void> {
  const askedAt = performance.now()
  for (const worker of workers) worker.tell('shutdown 10000')
  // One that met a rejection that nobody handled has ended otherwise.
  for (const worker of workers) expect(await worker.ended).toEqual({ code: 0, signal: null })
  expect(performance.now() - askedAt).toBeLessThan(10_000)
}

async function expectPromise({ journal, client }: QueuePlace, runs: number): Promise<void> {
  const account = accountOf(journal.read())
  expect(account.faults).toEqual([])
  expect(account.repeatedEffects).toBe(0)
  expect(account.ended.size).toBe(runs)
  const claims = await claimsOf(client, Object.keys(queues))
  expect(mostAtOnce(claimsIn('wide', claims))).toBeLessThanOrEqual(WIDE)
  for (const key of KEYS) expect(mostAtOnce(claimsIn(`keyed/${key}`, claims))).toBe(1)
  // Trouble with the store is no outcome of a run. What was claimed by an answer that was lost has been handed back.
  const others = claims.filter(({ outcome }) => outcome !== 'succeeded' && outcome !== 'interrupted')
  expect(others).toEqual([])
}
