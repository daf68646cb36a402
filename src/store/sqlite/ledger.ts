/** The ledger of starts of each lane, for rate limits (store/limits.ts says how they are counted). */
import type { EpochMs } from '../../core/clock.ts'
import { number, text } from '../columns.ts'
import type { RateLimit, RateRoom } from '../limits.ts'
import { rateRoom } from '../limits.ts'
import type { Database } from './database.ts'

/** Which ledger is meant. */
export interface LaneName {
  readonly queue: string
  readonly lane: string
}

export const LEDGER_ENDS = `
select (select min(number) from perdure_starts where queue = ? and lane = ?), number, started_at
from perdure_starts where queue = ? and lane = ? order by number desc limit 1`
export const STARTS_FROM = `
select started_at from perdure_starts where queue = ? and lane = ? and number >= ? order by number limit ?`
/** The clock was set back: what starts in the future counts as of now. */
export const REDATE = 'update perdure_starts set started_at = ? where queue = ? and lane = ? and started_at > ?'

/** How many more runs of the lane may start now, up to `wanted`. Inside a transaction that writes. */
export function laneRateRoom(
  database: Database,
  { queue, lane }: LaneName,
  { rate, wanted, now }: { readonly rate: RateLimit; readonly wanted: number; readonly now: EpochMs },
): RateRoom {
  const ends = database.prepare(LEDGER_ENDS).get(queue, lane, queue, lane)
  if (ends === undefined) return rateRoom(rate, { count: 0, oldest: [] }, wanted, now)
  const [oldest, newest, newestAt] = ends.map(number)
  if (oldest === undefined || newest === undefined || newestAt === undefined) throw new Error('a ledger without ends')
  if (newestAt > now) database.prepare(REDATE).run(now, queue, lane, now)
  const from = Math.max(oldest, newest - rate.limit + 1)
  const starts = database
    .prepare(STARTS_FROM)
    .all(queue, lane, from, wanted)
    .map((row) => number(row[0]))
  return rateRoom(rate, { count: newest - from + 1, oldest: starts }, wanted, now)
}

/** When the next run of the lane may start, as a look sees it, which writes nothing; null: now. */
export function laneOpensAt(database: Database, lane: LaneName, rate: RateLimit, now: EpochMs): EpochMs | null {
  const gate = database.prepare(GATE).get(lane.queue, lane.lane, lane.queue, lane.lane, rate.limit)
  return gate === undefined ? null : opensAfter(rate, number(gate[0]), now)
}

/** The start that has to be older than the period before the next may be. */
export const GATE = `
select started_at from perdure_starts where queue = ? and lane = ?
  and number = (select max(number) from perdure_starts where queue = ? and lane = ?) + 1 - ?`

/** `gate`: when the start was that the next has to wait for. null: the next may be now. */
export function opensAfter(rate: RateLimit, gate: EpochMs, now: EpochMs): EpochMs | null {
  return rateRoom(rate, { count: rate.limit, oldest: [Math.min(gate, now)] }, 1, now).opensAt
}

export const INSERT_START = `
insert into perdure_starts (queue, lane, number, started_at)
values (?, ?, (select coalesce(max(number), 0) + 1 from perdure_starts where queue = ? and lane = ?), ?)`
/** Kept are the newest `limit`, and all that are younger than the period. */
export const PRUNE = `
delete from perdure_starts where queue = ? and lane = ?
  and number <= (select max(number) from perdure_starts where queue = ? and lane = ?) - ? and started_at <= ?`

export function recordStarts(
  database: Database,
  { queue, lane }: LaneName,
  { rate, count, now }: { readonly rate: RateLimit; readonly count: number; readonly now: EpochMs },
): void {
  const insert = database.prepare(INSERT_START)
  for (let n = 0; n < count; n += 1) insert.run(queue, lane, queue, lane, now)
  database.prepare(PRUNE).run(queue, lane, queue, lane, rate.limit, now - rate.periodMs)
  const before = now - Math.max(rate.periodMs, IDLE_MS)
  if (lane !== '') for (let n = 0; n < LOOKED_AT; n += 1) forgetIdle(database, queue, before)
}

/** With every start; more than one, so that the look gets round while every start is in a lane of its own. */
const LOOKED_AT = 2
/** Beyond the period, for the case that a longer one is set. */
const IDLE_MS = 24 * 3_600_000
export const NEXT_LEDGER = 'select lane from perdure_starts where queue = ? and lane > ? order by lane limit 1'
export const FORGET = `
delete from perdure_starts where queue = ? and lane = ?
  and (select started_at from perdure_starts where queue = ? and lane = ? order by number desc limit 1) < ?`
/** The ledger that was looked at last, of each queue. */
const lookedAt = new WeakMap<Database, Map<string, string>>()

/** Keys of partitions come and go: with every start others are looked at, and go if nothing has started there. */
function forgetIdle(database: Database, queue: string, before: EpochMs): void {
  const last = lookedAt.get(database) ?? new Map<string, string>()
  lookedAt.set(database, last)
  const next = database.prepare(NEXT_LEDGER).get(queue, last.get(queue) ?? '')
  last.set(queue, next === undefined ? '' : text(next[0]))
  if (next !== undefined) database.prepare(FORGET).run(queue, text(next[0]), queue, text(next[0]), before)
}
