/** What a claim leaves behind in the lanes of its queues: who comes next, and which are closed until when. */
import type { EpochMs } from '../../../core/clock.ts'
import { text } from '../../columns.ts'
import type { ClaimRequest } from '../../contract.ts'
import type { LaneName, Listed } from '../lanes.ts'
import { fromLaneVersion, toLaneVersion } from '../lanes.ts'
import type { Transaction } from '../session.ts'
import type { Turn } from './plan.ts'
import { hasMore } from './plan.ts'
import { heldIn } from './survey-sql.ts'

export interface LaneTrace extends LaneName {
  readonly turn: Turn
  /** It was served, as so many-th of this claim; null: it keeps its turn. */
  readonly served: number | null
  /** 0: now, null: its rate limit never lets one start. */
  readonly opensAt: EpochMs | null
}

/** Rate limits of lanes that let a run start again; or that were closed before the clock was set back. */
export const REOPEN_BY_TIME = `
update perdure.lanes l set ready_at = 0
from (
  select l.queue, l.lane, l.definition, l.version
  from unnest($1::text[]) as a (queue) join perdure.queues q on q.name = a.queue
    cross join lateral (
      (select * from perdure.lanes l where l.queue = q.name and l.ready_at > 0 and l.ready_at <= $2::bigint
        order by l.ready_at limit $3::bigint)
      union all
      (select * from perdure.lanes l
        where l.queue = q.name and l.ready_at > 0 and l.ready_at > $2::bigint + coalesce(q.rate_period_ms, 0)
        order by l.ready_at limit $3::bigint)) due
    join perdure.lanes l on l.queue = due.queue and l.lane = due.lane and l.definition = due.definition
      and l.version = due.version
  order by l.queue, l.lane, l.definition, l.version
  for no key update of l) due
where l.queue = due.queue and l.lane = due.lane and l.definition = due.definition and l.version = due.version`

/** More would take its time: the next claim goes on. */
const MOST_REOPENED = 2_000

export async function reopenByTime(transaction: Transaction, queues: readonly string[], now: EpochMs): Promise<void> {
  await transaction.query(REOPEN_BY_TIME, [queues, now, MOST_REOPENED])
}

/** Where a row is stored: it is locked, so it stays there. */
const SPOT = `(
    select l.ctid from perdure.lanes l
    where l.queue = t.queue and l.lane = t.lane and l.definition = t.definition and l.version = t.version)`

/**
 * The rows are locked, and the runs of this claim stored. A lane is closed as full if the runs that fill it can be
 * locked, too: so whoever ends one of them comes later and finds the lane closed, even if no row of it was there when
 * he began. If somebody is at one of them at this moment, the lane stays open.
 *
 * Rows that seem to stand for nothing any more are locked once more, as deleting them takes it; one that somebody is
 * adding a run to is left alone.
 */
export const LEAVE_LANES = `
with trace as materialized (
  select t.*, ${SPOT} as spot, case when t.served is not null
    then first_value(t.next) over (partition by t.queue, t.lane order by t.next) end as place
  from (
    select t.*, case when t.served is not null then pg_catalog.nextval('perdure.places') end as next
    from (
      select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[],
        $8::bigint[], $9::boolean[])
        as t (queue, lane, definition, version, served, opens_at, seems_empty, global_concurrency,
          release_while_waiting)
      order by t.served) t) t),
empty as materialized (
  select l.queue, l.lane, l.definition, l.version
  from trace t cross join lateral (select * from perdure.lanes l where l.ctid = t.spot for update of l skip locked) l
  where t.seems_empty),
moved as (
  update perdure.lanes l set place = coalesce(t.place, l.place),
    ready_at = case when t.global_concurrency is not null
      and ${heldIn('t.queue', 't.lane', 't', 'for share of h skip locked')} >= t.global_concurrency then null else t.opens_at end
  from trace t
  where l.ctid = t.spot and (select count(*) from empty) >= 0)
select queue, lane, definition, version from empty`

/** Looks again, after the locks, whether the rows stand for nothing. */
export const DELETE_EMPTY = `
delete from perdure.lanes l using (
  select ${SPOT} as spot
  from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as t (queue, lane, definition, version)
  where (
    select true from perdure.runs r
    where r.status = 'ENQUEUED' and r.lane is not null and r.queue = t.queue and r.lane = t.lane
      and r.definition = t.definition and coalesce('=' || r.version, '') = t.version
    order by r.rank, r.seq limit 1) is null) empty
where l.ctid = empty.spot`

/** `rows`: those of the lanes, locked. */
export async function leaveTraces(
  transaction: Transaction,
  request: ClaimRequest,
  traces: readonly LaneTrace[],
  rows: readonly Listed[],
): Promise<void> {
  if (rows.length === 0) return
  const definitions = new Set(request.definitions.map(({ name }) => name))
  const byLane = new Map(traces.map((trace) => [nameOf(trace), trace]))
  const marked = rows.flatMap((row) => {
    const trace = byLane.get(nameOf(row))
    return trace === undefined ? [] : [{ row, trace }]
  })
  const isServed = ({ definition, version }: Listed): boolean =>
    definitions.has(definition) && (request.version === null || version === null || version === request.version)
  const empty = await transaction.query(LEAVE_LANES, [
    ...keysOf(marked.map(({ row }) => row)),
    marked.map(({ trace }) => trace.served),
    marked.map(({ trace }) => trace.opensAt),
    marked.map(({ row, trace: { turn } }) => isServed(row) && !leaves(turn, row)),
    marked.map(({ trace }) => trace.turn.room.queue?.globalConcurrency ?? null),
    marked.map(({ trace }) => trace.turn.room.queue?.releaseWhileWaiting ?? false),
  ])
  if (empty.length === 0) return
  await transaction.query(
    DELETE_EMPTY,
    keysOf(
      empty.map((row) => ({
        ...{ queue: text(row[0]), lane: text(row[1]), definition: text(row[2]) },
        version: fromLaneVersion(row[3]),
      })),
    ),
  )
}

/** True if the lane may have more of what the row stands for than was taken. */
function leaves(turn: Turn, { definition, version }: Listed): boolean {
  const { starts, depth } = turn.surveyed
  if (starts.length >= depth) return hasMore(turn)
  return starts.slice(turn.taken).some((start) => start.definition === definition && start.version === version)
}

function nameOf({ queue, lane }: LaneName): string {
  return JSON.stringify([queue, lane])
}

function keysOf(rows: readonly Listed[]): readonly (readonly string[])[] {
  return [
    rows.map(({ queue }) => queue),
    rows.map(({ lane }) => lane),
    rows.map(({ definition }) => definition),
    rows.map(({ version }) => toLaneVersion(version)),
  ]
}
