/**
 * Which lists have something to claim now, all in one statement. A list is what is claimable of one queue, definition
 * and version. Each queue is asked first whether it has anything, so an idle one costs one search, and no run is looked
 * at that the claimant may not take.
 */
import type { EpochMs } from '../../../core/clock.ts'
import { text, textOrNull, word } from '../../columns.ts'
import type { Database } from '../database.ts'
import { isFullFor } from '../lanes.ts'
import type { Sources, SurveyedSource } from './sources.ts'
import { hasRoom } from './sources.ts'

/** A list that is not empty. `work`: what its runs are due for. */
export interface List {
  readonly work: Work
  readonly queue: string | null
  readonly definition: string
  readonly version: string | null
  /** Of lanes: of those that exactly these owners have their fill of (lanes.ts). */
  readonly fullFor: string
}
type Work = 'start' | 'resume' | 'promote' | 'start in lanes' | 'resume in lanes'

/** A table `list` of the definitions and versions that a claimant serves, and one of what a statement is asked with. */
export const SERVED = `asked (definitions, versions, now) as (select ?, ?, ?),
list (definition, version) as materialized (
  select d.value, v.value from asked cross join json_each(asked.definitions) d cross join json_each(asked.versions) v)`

/** Lists that have something now. A lane may be closed all the same, which the claim finds out. */
export const LISTS = `
with ${SERVED}
select 'start', s.value, list.definition, list.version, '' from json_each(?) s cross join list
where exists (select 1 from perdure_runs r indexed by perdure_runs_claimable
    where r.status = 'ENQUEUED' and r.queue is s.value and r.lane = '')
  and exists (select 1 from perdure_runs r indexed by perdure_runs_claimable
    where r.status = 'ENQUEUED' and r.queue is s.value and r.lane = ''
      and r.definition = list.definition and r.version is list.version)
union all
select 'resume', s.value, list.definition, list.version, '' from json_each(?) s cross join list
where exists (select 1 from perdure_runs r indexed by perdure_runs_suspended
    where r.status = 'WAITING' and r.due_at is not null and r.queue is s.value and r.lane = '')
  and exists (select 1 from perdure_runs r indexed by perdure_runs_suspended
    where r.status = 'WAITING' and r.due_at is not null and r.queue is s.value and r.lane = ''
      and r.definition = list.definition and r.version is list.version and r.due_at <= (select now from asked))
union all
select 'promote', s.value, list.definition, list.version, '' from json_each(?) s cross join list
where exists (select 1 from perdure_runs r indexed by perdure_runs_delayed
    where r.status = 'DELAYED' and r.lane is not null and r.queue is s.value)
  and exists (select 1 from perdure_runs r indexed by perdure_runs_delayed
    where r.status = 'DELAYED' and r.lane is not null and r.queue is s.value
      and r.definition = list.definition and r.version is list.version and r.due_at <= (select now from asked))
union all
select 'start in lanes', q.name, list.definition, list.version, o.value
from json_each(?) s cross join perdure_queues q on q.name = s.value cross join list cross join json_each(?) o
where exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = q.name and l.work = 'start')
  and (exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = q.name and l.work = 'start' and l.definition = list.definition
      and l.version = coalesce('=' || list.version, '') and l.full_for = o.value
      and l.ready_at <= (select now from asked))
  or exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = q.name and l.work = 'start' and l.definition = list.definition
      and l.version = coalesce('=' || list.version, '') and l.full_for = o.value
      and l.ready_at > (select now from asked) + q.rate_period_ms))
union all
select 'resume in lanes', s.value, list.definition, list.version, o.value
from json_each(?) s cross join list cross join json_each(?) o
where exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = s.value and l.work = 'resume')
  and exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = s.value and l.work = 'resume' and l.definition = list.definition
      and l.version = coalesce('=' || list.version, '') and l.full_for = o.value and l.ready_at = 0
      and l.place <= (select now from asked))`

const toWork = word<Work>(['start', 'resume', 'promote', 'start in lanes', 'resume in lanes'])

/** `definitions`: as JSON text. */
export function findLists(
  database: Database,
  { sources, versions, owners }: Sources,
  { definitions, owner, now }: { readonly definitions: string; readonly owner: string; readonly now: EpochMs },
): readonly List[] {
  const starts = queuesOf(sources, ({ laned, globalOpen }) => !laned && globalOpen)
  const resumes = queuesOf(sources, ({ source, laned, globalOpen, queue }) => {
    return !laned && hasRoom(source) && (globalOpen || queue?.releaseWhileWaiting !== true)
  })
  const all = queuesOf(sources, () => true)
  const lanes = queuesOf(sources, ({ source, laned }) => laned && source.room > 0)
  const others = othersThan(owner, owners)
  return database
    .prepare(LISTS)
    .all(definitions, versions, now, starts, resumes, all, lanes, others, lanes, others)
    .map((row) => ({
      work: toWork(row[0]),
      queue: textOrNull(row[1]),
      definition: text(row[2]),
      version: textOrNull(row[3]),
      fullFor: text(row[4]),
    }))
}

/** As JSON text. Nothing of a paused queue is claimed, whatever is wanted of it. */
export function queuesOf(sources: readonly SurveyedSource[], wanted: (source: SurveyedSource) => boolean): string {
  return JSON.stringify(sources.filter((it) => !it.paused && wanted(it)).map(({ source }) => source.queue))
}

function othersThan(owner: string, owners: string): string {
  const all: unknown = JSON.parse(owners)
  return JSON.stringify(Array.isArray(all) ? all.filter((fullFor) => !isFullFor(text(fullFor), owner)) : [])
}
