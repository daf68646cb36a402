/** What runs derive from their queue, all of them at once, when the queue has changed. */
import type { QueueKnobs } from '../records.ts'
import type { Database } from './database.ts'

/** All runs of a queue that have not ended are in one of four indexes. */
export const DERIVE_RUNS = `
with derived (seq, lane, rank) as (
  select seq, case when ? then coalesce(partition_key, case when deliveries > 0 then '' end) else '' end, case when ? then priority else 0 end from perdure_runs
  where seq in (
    select seq from perdure_runs indexed by perdure_runs_claimable
    where status = 'ENQUEUED' and lane is not null and queue = ?
    union all
    select seq from perdure_runs indexed by perdure_runs_keyless
    where status in ('ENQUEUED', 'DELAYED') and lane is null and queue = ?
    union all
    select seq from perdure_runs indexed by perdure_runs_delayed
    where status = 'DELAYED' and lane is not null and queue = ?
    union all
    select seq from perdure_runs indexed by perdure_runs_active where queue = ? and status in ('PENDING', 'WAITING')))
update perdure_runs set lane = derived.lane, rank = derived.rank from derived
where perdure_runs.seq = derived.seq and (perdure_runs.lane is not derived.lane or perdure_runs.rank <> derived.rank)`

/** store/transitions.ts, `placeInQueue`, for every run of the queue. */
export function deriveRuns(
  database: Database,
  {
    name,
    partitioned,
    priorityEnabled,
  }: Pick<QueueKnobs, 'partitioned' | 'priorityEnabled'> & { readonly name: string },
): void {
  database.prepare(DERIVE_RUNS).run(partitioned ? 1 : 0, priorityEnabled ? 1 : 0, name, name, name, name)
}

export const DELETE_LANES = 'delete from perdure_lanes where queue = ?'
/** The lane of the run that has waited longest comes first. */
export const DERIVE_STARTS = `
insert into perdure_lanes (queue, lane, work, definition, version, place, run, ready_at, full_for)
select queue, lane, 'start', definition, coalesce('=' || version, ''), dense_rank() over (order by first), 0, 0, ''
from (
  select queue, lane, definition, version, min(min(seq)) over (partition by lane) as first
  from perdure_runs indexed by perdure_runs_claimable
  where status = 'ENQUEUED' and lane is not null and queue = ?
  group by lane, definition, version)`
export const DERIVE_RESUMES = `
insert into perdure_lanes (queue, lane, work, definition, version, place, run, ready_at, full_for)
select queue, lane, 'resume', definition, coalesce('=' || version, ''), due_at, seq, 0, ''
from (
  select queue, lane, definition, version, due_at, seq,
    row_number() over (partition by lane, definition, version order by due_at, seq) as number
  from perdure_runs indexed by perdure_runs_suspended
  where status = 'WAITING' and due_at is not null and lane is not null and queue = ?)
where number = 1`
export const DERIVE_TURNS = `
update perdure_queues set turns = coalesce((select max(place) from perdure_lanes where queue = ? and work = 'start'), 0)
where name = ?`

/** Lists the lanes of the queue anew. */
export function deriveLanes(database: Database, queue: string, partitioned: boolean): void {
  database.prepare(DELETE_LANES).run(queue)
  if (!partitioned) return
  database.prepare(DERIVE_STARTS).run(queue)
  database.prepare(DERIVE_RESUMES).run(queue)
  database.prepare(DERIVE_TURNS).run(queue, queue)
}
