/**
 * The ledger of starts of each lane, for rate limits (store/limits.ts says how they are counted). Only a claim that
 * holds the row of the queue writes it.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { RateLimit } from '../limits.ts'
import { rateRoom } from '../limits.ts'
import type { LaneName } from './lanes.ts'
import type { Transaction } from './session.ts'

/** The numbers of the oldest and the newest start, and when the newest was. */
export interface Ledger {
  readonly first: number
  readonly last: number
  readonly lastAt: EpochMs
  /** The oldest of the newest `limit` starts, in order, as many as are asked about. */
  readonly oldest: readonly EpochMs[]
}

/** How many runs may start now, as far as the ledger was read; infinite without a limit. */
export function startsAllowed(rate: RateLimit | null, ledger: Ledger | null, now: EpochMs): number {
  if (rate === null) return Number.POSITIVE_INFINITY
  return rateRoom(rate, { count: countOf(rate, ledger), oldest: datedBy(ledger, now) }, Number.POSITIVE_INFINITY, now)
    .room
}

/** So many runs that start together. */
export interface NewStarts {
  readonly count: number
  readonly at: EpochMs
}

/** When the next run may start, once these have started; 0: now, null: it is not known that one ever will. */
export function opensAfter(
  rate: RateLimit | null,
  ledger: Ledger | null,
  started: NewStarts,
  now: EpochMs,
): EpochMs | null {
  if (rate === null) return 0
  const count = countOf(rate, ledger)
  const oldest = [...datedBy(ledger, now), ...Array.from({ length: started.count }, () => started.at)]
  const recent = {
    count: Math.min(rate.limit, count + started.count),
    oldest: oldest.slice(gateOf(rate, count, started.count)),
  }
  const { room, opensAt } = rateRoom(rate, recent, 1, now)
  return room > 0 ? 0 : opensAt
}

/** How many of the newest starts no longer are among them after so many more. */
function gateOf({ limit }: RateLimit, count: number, started: number): number {
  return Math.max(0, count + started - limit)
}

function countOf({ limit }: RateLimit, ledger: Ledger | null): number {
  return ledger === null ? 0 : Math.min(limit, ledger.last - ledger.first + 1)
}

/** Starts in the future were recorded before the clock was set back: they count as of now. */
function datedBy(ledger: Ledger | null, now: EpochMs): readonly EpochMs[] {
  return (ledger?.oldest ?? []).map((startedAt) => Math.min(startedAt, now))
}

/** What a claim leaves in the ledger of a lane. */
export interface LedgerTrace extends LaneName {
  readonly ledger: Ledger | null
  readonly rate: RateLimit
  readonly started: number
}

/**
 * New starts; those in the future, as the clock was set back, are dated to now; kept are the newest `limit`, and all
 * that are younger than the period. The three touch different rows.
 */
export const RECORD_STARTS = `
with trace as materialized (
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    as t (queue, lane, last, started, keep, period)),
added as (
  insert into perdure.starts (queue, lane, number, started_at)
  select t.queue, t.lane, t.last + n, $7::bigint from trace t cross join lateral generate_series(1, t.started) n),
redated as (
  update perdure.starts s set started_at = $7::bigint from trace t
  where s.queue = t.queue and s.lane = t.lane and s.started_at > $7::bigint)
delete from perdure.starts s using trace t
where s.queue = t.queue and s.lane = t.lane and s.number <= t.last + t.started - t.keep
  and s.started_at <= $7::bigint - t.period`

export async function recordStarts(
  transaction: Transaction,
  traces: readonly LedgerTrace[],
  now: EpochMs,
): Promise<void> {
  await transaction.query(RECORD_STARTS, [
    traces.map(({ queue }) => queue),
    traces.map(({ lane }) => lane),
    traces.map(({ ledger }) => ledger?.last ?? 0),
    traces.map(({ started }) => started),
    traces.map(({ rate }) => rate.limit),
    traces.map(({ rate }) => rate.periodMs),
    now,
  ])
}

/** With each start in a lane; more than one, so that the look gets round while every start is in a lane of its own. */
const LOOKED_AT = 2
/** Beyond the period, for the case that a longer one is set. */
const IDLE_MS = 24 * 3_600_000

/** Ledgers of the next lanes after one, by name, of which those go where nothing has started for long. */
export const FORGET_IDLE = `
with recursive looked (n, lane) as (
  select 1, (select s.lane from perdure.starts s where s.queue = $1 and s.lane > $2 order by s.lane limit 1)
  union all
  select l.n + 1, (select s.lane from perdure.starts s where s.queue = $1 and s.lane > l.lane order by s.lane limit 1)
  from looked l where l.lane is not null and l.n < $3::bigint),
idle as (
  select l.lane from looked l where l.lane is not null and (
    select s.started_at from perdure.starts s where s.queue = $1 and s.lane = l.lane order by s.number desc limit 1) < $4),
gone as (delete from perdure.starts s using idle i where s.queue = $1 and s.lane = i.lane)
select max(lane), count(*) < $3 from looked where lane is not null`

/** The ledger that was looked at last, of each queue of each store. */
const lookedAt = new WeakMap<object, Map<string, string>>()

/** Keys of partitions come and go: with every start others are looked at, and go if nothing has started there. */
export async function forgetIdle(
  transaction: Transaction,
  store: object,
  { queue, started, rate, now }: { queue: string; started: number; rate: RateLimit; now: EpochMs },
): Promise<void> {
  const last = lookedAt.get(store) ?? new Map<string, string>()
  lookedAt.set(store, last)
  const before = now - Math.max(rate.periodMs, IDLE_MS)
  const count = LOOKED_AT * started
  const [row] = await transaction.query(FORGET_IDLE, [queue, last.get(queue) ?? '', count, before])
  const [lane, isEnd] = row ?? []
  last.set(queue, typeof lane === 'string' && isEnd !== true ? lane : '')
}
