/**
 * What runs derive from their queue, all of them at once, when the queue has changed. Whoever calls holds the row of
 * the queue FOR UPDATE, so no run joins the queue meanwhile, nor is one promoted or claimed.
 */
import type { QueueKnobs } from '../records.ts'
import type { Transaction } from './session.ts'

/** $1 queue, $2 partitioned, $3 priorities are heeded, $4 it may have runs without a lane, as it was partitioned. */
const LANE = `case when $2::boolean then coalesce(r.partition_key, case when r.deliveries > 0 then '' end) else '' end`
const RANK = 'case when $3::boolean then r.priority else 0 end'

/** Each run is looked at again once it is locked. Those that have not ended are in one of these indexes. */
export const DERIVE_RUNS = `
update perdure.runs r set lane = ${LANE}, rank = ${RANK}
from (
  select r.seq from perdure.runs r where r.status = 'ENQUEUED' and r.lane is not null and r.queue = $1
  union all
  select r.seq from perdure.runs r where r.status = 'DELAYED' and r.lane is not null and r.queue = $1
  union all
  select r.seq from perdure.runs r
  where r.status in ('ENQUEUED', 'DELAYED') and r.lane is null and r.queue <> '' and r.queue = $1 and $4::boolean
  union all
  select r.seq from perdure.runs r where r.status in ('PENDING', 'WAITING') and r.queue <> '' and r.queue = $1) live
where r.seq = live.seq and r.status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING')
  and (r.lane is distinct from ${LANE} or r.rank <> ${RANK})`

/** store/transitions.ts, `placeInQueue`, for every run of the queue. */
export async function deriveRuns(
  transaction: Transaction,
  before: Pick<QueueKnobs, 'partitioned'>,
  queue: Pick<QueueKnobs, 'partitioned' | 'priorityEnabled'> & { readonly name: string },
): Promise<void> {
  const { name, partitioned, priorityEnabled } = queue
  await transaction.query(DERIVE_RUNS, [name, partitioned, priorityEnabled, before.partitioned])
}

export const DELETE_LANES = 'delete from perdure.lanes where queue = $1'
/** The lane of the run that has waited longest comes first. Without a join, as nobody knows how many lanes there are. */
export const DERIVE_LANES = `
insert into perdure.lanes (queue, lane, definition, version, place, ready_at)
select $1, l.lane, l.definition, l.version, first_value(l.next) over (partition by l.lane order by l.next), 0
from (
  select l.*, pg_catalog.nextval('perdure.places') as next
  from (
    select r.lane, r.definition, coalesce('=' || r.version, '') as version,
      min(min(r.seq)) over (partition by r.lane) as first
    from perdure.runs r where r.status = 'ENQUEUED' and r.lane is not null and r.queue = $1
    group by r.lane, r.definition, r.version
    order by first) l) l`

/** Lists the lanes of the queue anew. */
export async function deriveLanes(transaction: Transaction, queue: string, partitioned: boolean): Promise<void> {
  await transaction.query(DELETE_LANES, [queue])
  if (partitioned) await transaction.query(DERIVE_LANES, [queue])
}

export const REOPEN_LANES = `
update perdure.lanes l set ready_at = 0
from (
  select l.queue, l.lane, l.definition, l.version from perdure.lanes l where l.queue = $1
  order by l.queue, l.lane, l.definition, l.version for no key update) locked
where l.queue = locked.queue and l.lane = locked.lane and l.definition = locked.definition
  and l.version = locked.version and l.ready_at is distinct from 0`

/** The limits of the queue are others now. */
export async function reopenLanes(transaction: Transaction, queue: string): Promise<void> {
  await transaction.query(REOPEN_LANES, [queue])
}
