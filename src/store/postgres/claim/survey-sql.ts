/**
 * What the sources of a claim have to give, in one statement without a lock, however many there are.
 *
 * Every list is read in its own order from an index, and no further than a claim could take of it (and one more, to
 * know whether anything is left), so the statement costs what may be claimed, whatever else the store holds. A queue
 * is asked first whether it has anything at all: an idle one costs a few searches, whatever number of definitions is
 * served. `limit` inside `lateral` keeps the planner from joining whole tables instead.
 * A list in a `(select $n)` has a length that the planner can't know: otherwise it would think that a plan made for each
 * single look is cheaper than one made once for all, and take longer to make it than to carry it out.
 *
 * Parameters: $1 the instant (null: the database's), $2 definitions, $3 whether any version will do, $4 the version,
 * $5 how many runs are wanted, $6 how many lanes of a queue are looked at, $7 how deep into each at least, $8 owner,
 * $9 tokens, $10 queues, $11 room in each, $12 and $13 of each the lanes to pass over, as JSON: for starts, for resumes;
 * $14 how many suspended runs are read for each that is wanted.
 */
import { QUEUE_COLUMNS } from '../../queue-row.ts'
import { NOW } from '../session.ts'

const VERSION = '((select $3::boolean) or r.version is null or r.version = (select $4::text))'

/**
 * Runs that count against the global limit of a lane, up to so many. `locking`: only those that can be locked so, and no
 * other transaction is about to change.
 */
export function heldIn(queue: string, lane: string, source: string, locking = ''): string {
  const counted = (statuses: string): string => `(
      select count(*) from (
        select 1 from perdure.runs h
        where h.queue <> '' and h.queue = ${queue} and h.lane = ${lane} and ${statuses}
        limit ${source}.global_concurrency ${locking}) held)`
  return `case when ${source}.release_while_waiting then ${counted(`h.status = 'PENDING'`)}
    else ${counted(`h.status in ('PENDING', 'WAITING')`)} end`
}

/** The ends of a lane's ledger, and the oldest of its newest `rate_limit` starts: as many as may be asked about. */
function ledgerOf(queue: string, lane: string, source: string): string {
  const of = `g.queue = ${queue} and g.lane = ${lane}`
  return `case when ${source}.rate_limit is null then null else (
    select json_build_array(e.first, e.last, e.last_at, (
      select json_agg(o.started_at order by o.number) from (
        select g.number, g.started_at from perdure.starts g
        where ${of} and g.number > e.last - ${source}.rate_limit
        order by g.number limit ${source}.wanted + 1) o))
    from (
      select (select g.number from perdure.starts g where ${of} order by g.number limit 1) as first,
        g.number as last, g.started_at as last_at
      from perdure.starts g where ${of} order by g.number desc limit 1) e) end`
}

/** The first enqueued runs of a lane, of the definitions that `definitions` lists, in their order. */
function startsOf(
  definitions: string,
  place: { readonly queue: string; readonly lane: string; readonly limit: string },
) {
  return `(
    select json_agg(json_build_array(c.definition, c.version, c.seq) order by c.rank, c.seq) from (
      select d.definition, r.version, r.rank, r.seq
      from ${definitions} cross join lateral (
        select r.version, r.rank, r.seq from perdure.runs r
        where r.status = 'ENQUEUED' and r.queue = ${place.queue} and r.lane = ${place.lane}
          and r.definition = d.definition and ${VERSION}
        order by r.rank, r.seq limit ${place.limit}) r
      order by r.rank, r.seq limit ${place.limit}) c)`
}

const DEFINITIONS = 'unnest((select $2::text[])) as d (definition)'
const NOW_ASKED = '(select now from clock)'

/** A lane without room for a resume is passed over, unless what waits there is counted all the time. */
const RESUMES = `(
    select json_agg(json_build_array(c.due_at, c.seq, c.definition, c.lane, c.held) order by c.due_at, c.seq) from (
      select d.definition, r.due_at, r.seq, r.lane, r.held
      from ${DEFINITIONS} cross join lateral (
        select r.due_at, r.seq, r.lane, case when s.blocks then ${heldIn('s.queue', 'r.lane', 's')} end as held
        from perdure.runs r
        where r.status = 'WAITING' and r.due_at is not null and r.lane is not null and r.queue = s.queue
          and r.definition = d.definition and r.due_at <= ${NOW_ASKED} and ${VERSION} and not s.no_resume ? r.lane
          and (not s.blocks or ${heldIn('s.queue', 'r.lane', 's')} < s.global_concurrency)
        order by r.due_at, r.seq limit s.wanted * (select $14::bigint)) r
      order by r.due_at, r.seq limit s.wanted * (select $14::bigint)) c)`

const delayed = (condition: string): string => `
        select r.due_at from perdure.runs r
        where r.status = 'DELAYED' and r.lane is not null and r.queue = s.queue and r.definition = d.definition
          and r.due_at ${condition} ${NOW_ASKED} and ${VERSION}
        order by r.due_at limit 1`

/**
 * Not `exists`: that might be answered by a list of all queues that have such runs. In an order, as else the table might
 * be read until there is one.
 */
const hasAny = (runs: string): string => `(
    select true from perdure.runs r where ${runs} and r.queue = s.queue order by r.definition limit 1) is true`
const HAS_DELAYED = hasAny(`r.status = 'DELAYED' and r.lane is not null`)
const HAS_SUSPENDED = hasAny(`r.status = 'WAITING' and r.due_at is not null and r.lane is not null`)
const HAS_ENQUEUED = hasAny(`r.status = 'ENQUEUED' and r.lane = ''`)

const SERVES_LANE = `l.definition = any ((select $2::text[])::text[])
      and ((select $3::boolean) or l.version = '' or l.version = '=' || (select $4::text))`

/** Runs of a lane that are read: its share of what is wanted, and one more. */
const DEPTH = '(greatest((select $7::bigint), (s.wanted - 1) / t.lanes + 1) + 1)'

/** In the order that survey.ts reads. */
export const SURVEY = `
with recursive clock as materialized (select coalesce((select $1::bigint), ${NOW}) as now),
source as materialized (
  select s.n, s.queue, s.no_start::jsonb as no_start, s.no_resume::jsonb as no_resume, ${QUEUE_COLUMNS},
    case when q.paused is true then 0 else least(s.room, (select $5::bigint)) end as wanted, q.paused is true as rests,
    q.partitioned is true as laned, q.release_while_waiting is true and q.global_concurrency is not null as blocks
  from unnest((select $10::text[]), (select $11::bigint[]), (select $12::text[]), (select $13::text[])) with ordinality
    as s (queue, room, no_start, no_resume, n)
  left join perdure.queues q on q.name = s.queue and s.queue <> ''),
served (n, queue, definition, version) as (
  select s.n, s.queue, d.definition, (
    select l.version from perdure.lanes l
    where l.queue = s.queue and l.definition = d.definition and l.ready_at = 0 order by l.version limit 1)
  from source s cross join ${DEFINITIONS} where s.laned and not s.rests
  union all
  select v.n, v.queue, v.definition, (
    select l.version from perdure.lanes l
    where l.queue = v.queue and l.definition = v.definition and l.ready_at = 0 and l.version > v.version
    order by l.version limit 1)
  from served v where v.version is not null),
turn as materialized (
  select s.n, t.lane, min(t.place) as place, count(*) as listed, count(*) over (partition by s.n) as lanes
  from source s cross join lateral (
    select l.lane, l.place
    from served v cross join lateral (
      select l.lane, l.place from perdure.lanes l
      where l.queue = s.queue and l.definition = v.definition and l.version = v.version and l.ready_at = 0
        and not s.no_start ? l.lane
      order by l.place limit (select $6::bigint)) l
    where v.n = s.n and ((select $3::boolean) or v.version = '' or v.version = '=' || (select $4::text))
    order by l.place limit (select $6::bigint)) t
  where s.laned and not s.rests
  group by s.n, t.lane)
select ${QUEUE_COLUMNS}, (select now from clock),
  (select true from perdure.runs r
    where r.status = 'PENDING' and r.owner = (select $8::text)
      and r.token between (select min(t collate "C") from unnest((select $9::text[])) t)
        and (select max(t collate "C") from unnest((select $9::text[])) t)
    order by r.token limit 1) is true,
  case when s.laned or s.global_concurrency is null then 0 else ${heldIn('s.queue', `''`, 's')} end,
  case when not s.laned then ${ledgerOf('s.queue', `''`, 's')} end,
  case when not s.laned and not s.rests and ${HAS_ENQUEUED}
    then ${startsOf(DEFINITIONS, { queue: 's.queue', lane: `''`, limit: '(s.wanted + 1)' })} end,
  case when s.wanted > 0 and ${HAS_SUSPENDED}
    and (s.laned or not s.blocks or ${heldIn('s.queue', `''`, 's')} < s.global_concurrency) then ${RESUMES} end,
  case when s.rests or not ${HAS_DELAYED} then false else (
    select true from ${DEFINITIONS} cross join lateral (${delayed('<=')}) r limit 1) is true end,
  case when s.rests or not (${HAS_DELAYED} or ${HAS_SUSPENDED}) then null else (
    select min(r.due_at) from ${DEFINITIONS} cross join lateral (
      (${delayed('>')})
      union all
      (select r.due_at from perdure.runs r
        where r.status = 'WAITING' and r.due_at is not null and r.lane is not null and r.queue = s.queue
          and r.definition = d.definition and r.due_at > ${NOW_ASKED} and ${VERSION}
        order by r.due_at limit 1)) r) end,
  (select json_agg(json_build_array(t.lane, t.listed, ${DEPTH},
      case when s.global_concurrency is null then 0 else ${heldIn('s.queue', 't.lane', 's')} end,
      ${ledgerOf('s.queue', 't.lane', 's')},
      ${startsOf(
        `(select distinct l.definition from perdure.lanes l
          where l.queue = s.queue and l.lane = t.lane and ${SERVES_LANE}) d`,
        { queue: 's.queue', lane: 't.lane', limit: DEPTH },
      )}) order by t.place)
    from turn t where t.n = s.n),
  case when s.rests or not s.laned then false else (
    select true from perdure.lanes l where l.queue = s.queue and l.ready_at > 0
      and (l.ready_at <= ${NOW_ASKED} or l.ready_at > ${NOW_ASKED} + s.rate_period_ms or s.rate_period_ms is null)
    order by l.ready_at limit 1) is true end,
  case when s.rests or not s.laned then null else (
    select l.ready_at
    from (
      select * from perdure.lanes l where l.queue = s.queue and l.ready_at > 0 and l.ready_at > ${NOW_ASKED}
      order by l.ready_at offset 0) l
    where ${SERVES_LANE} and not s.no_start ? l.lane limit 1) end
from source s order by s.n`
