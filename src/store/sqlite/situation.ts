/** Why a run does not run, as far as the store knows, and what it would take. */

import { number, text } from '../columns.ts'
import type { Situation } from '../contract.ts'
import type { QueueRecord, RunRecord } from '../records.ts'
import type { Database } from './database.ts'
import { laneOpensAt } from './ledger.ts'
import { findQueue } from './queues.ts'
import { findRun } from './runs.ts'
import { liveVersions } from './versions.ts'
import { waitsOf } from './waits.ts'

/** So many are named, and so many are counted. */
const HOLDERS_NAMED = 10
const AHEAD_COUNTED = 1_000

export function situation(database: Database, id: string): Situation | undefined {
  const run = findRun(database, id)
  if (run === undefined) return undefined
  const queue = run.queue === null ? null : (findQueue(database, run.queue) ?? null)
  return {
    run,
    queue,
    ...holdersOf(database, run, queue),
    rateOpensAt: rateOpensAt(database, run, queue),
    ahead: aheadOf(database, run),
    waits: waitsOf(database, run),
  }
}

/** Those in the lane of a run that count against its global limit. */
export const HOLDERS = `
select id from perdure_runs indexed by perdure_runs_active
where queue = ? and lane = ? and status in ('PENDING', 'WAITING') and (status = 'PENDING' or ?) order by seq limit ?`
export const COUNT_HOLDERS = `
select count(*) filter (where status = 'PENDING'), count(*)
from perdure_runs indexed by perdure_runs_active where queue = ? and lane = ? and status in ('PENDING', 'WAITING')`

function holdersOf(
  database: Database,
  { lane }: RunRecord,
  queue: QueueRecord | null,
): Pick<Situation, 'active' | 'holders'> {
  if (lane === null || queue === null || queue.globalConcurrency === null) return { active: 0, holders: [] }
  const { name, releaseWhileWaiting } = queue
  const [pending, all] = database.prepare(COUNT_HOLDERS).get(name, lane) ?? []
  const holders = database.prepare(HOLDERS).all(name, lane, releaseWhileWaiting ? 0 : 1, HOLDERS_NAMED)
  return { active: number(releaseWhileWaiting ? pending : all), holders: holders.map((row) => text(row[0])) }
}

function rateOpensAt(database: Database, { lane }: RunRecord, queue: QueueRecord | null): number | null {
  if (lane === null || queue === null || queue.rateLimit === null) return null
  return laneOpensAt(database, { queue: queue.name, lane }, queue.rateLimit, database.clock.now())
}

/** The definitions of which runs are enqueued in a lane, one after the other. */
export const NEXT_DEFINITION = `
select definition from perdure_runs indexed by perdure_runs_claimable
where status = 'ENQUEUED' and queue is ? and lane = ? and definition > ? order by definition limit 1`
export const COUNT_AHEAD = `
select count(*) from (
  select 1 from perdure_runs indexed by perdure_runs_claimable
  where status = 'ENQUEUED' and queue is ? and lane = ? and definition = ? and version is ? and (rank, seq) < (?, ?)
  limit ?)`

function aheadOf(database: Database, { queue, lane, rank, seq }: RunRecord): number {
  if (lane === null) return 0
  const versions = [null, ...liveVersions(database)]
  const next = (after: string): string | undefined => {
    const row = database.prepare(NEXT_DEFINITION).get(queue, lane, after)
    return row === undefined ? undefined : text(row[0])
  }
  let ahead = 0
  for (let definition = next(''); definition !== undefined; definition = next(definition)) {
    for (const version of versions) {
      const count = database.prepare(COUNT_AHEAD)
      ahead += number(count.get(queue, lane, definition, version, rank, seq, AHEAD_COUNTED - ahead)?.[0])
    }
  }
  return ahead
}
