/** When time alone may make something claimable. */
import type { EpochMs } from '../../../core/clock.ts'
import { numberOrNull } from '../../columns.ts'
import type { Database } from '../database.ts'
import { queuesOf, SERVED } from './lists.ts'
import type { Survey } from './survey.ts'

export const NEXT = `
with ${SERVED}
select min(at) from (
  select (select min(r.due_at) from perdure_runs r indexed by perdure_runs_delayed
    where r.status = 'DELAYED' and r.lane is not null and r.queue is s.value
      and r.definition = list.definition and r.version is list.version and r.due_at > (select now from asked)) as at
  from json_each(?) s cross join list
  where exists (select 1 from perdure_runs r indexed by perdure_runs_delayed
    where r.status = 'DELAYED' and r.lane is not null and r.queue is s.value)
  union all
  select (select min(r.due_at) from perdure_runs r indexed by perdure_runs_suspended
    where r.status = 'WAITING' and r.due_at is not null and r.queue is s.value and r.lane = ''
      and r.definition = list.definition and r.version is list.version and r.due_at > (select now from asked)) as at
  from json_each(?) s cross join list
  where exists (select 1 from perdure_runs r indexed by perdure_runs_suspended
    where r.status = 'WAITING' and r.due_at is not null and r.queue is s.value and r.lane = '')
  union all
  select (select min(l.ready_at) from perdure_lanes l indexed by perdure_lanes_ready
    where l.queue = s.value and l.work = 'start' and l.definition = list.definition
      and l.version = coalesce('=' || list.version, '') and l.full_for = o.value
      and l.ready_at > (select now from asked)) as at
  from json_each(?) s cross join list cross join json_each(?) o
  where exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = s.value and l.work = 'start')
  union all
  select (select min(l.place) from perdure_lanes l indexed by perdure_lanes_ready
    where l.queue = s.value and l.work = 'resume' and l.definition = list.definition
      and l.version = coalesce('=' || list.version, '') and l.full_for = o.value and l.ready_at = 0
      and l.place > (select now from asked)) as at
  from json_each(?) s cross join list cross join json_each(?) o
  where exists (select 1 from perdure_lanes l indexed by perdure_lanes_ready
    where l.ready_at is not null and l.queue = s.value and l.work = 'resume'))`

/** The next instant at which time alone may make a run claimable; null: none is known. */
export function nextInstant(database: Database, found: Survey): EpochMs | null {
  const { now, sources, lists, definitions, versions, owners } = found
  const all = queuesOf(sources, () => true)
  const plain = queuesOf(sources, ({ laned }) => !laned)
  const lanes = queuesOf(sources, ({ laned }) => laned)
  const row = database.prepare(NEXT).get(definitions, versions, now, all, plain, lanes, owners, lanes, owners)
  let next = numberOrNull(row?.[0] ?? null)
  const waiting = new Set(lists.flatMap(({ work, queue }) => (work === 'start' ? [queue] : [])))
  for (const { source, rateOpensAt } of sources) {
    if (rateOpensAt !== null && waiting.has(source.queue)) next = Math.min(rateOpensAt, next ?? rateOpensAt)
  }
  return next
}
