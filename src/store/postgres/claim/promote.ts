/** Delayed runs that are due become claimable, at their place. The rows of their queues are locked. */
import type { EpochMs } from '../../../core/clock.ts'
import { text, textOrNull } from '../../columns.ts'
import type { ClaimRequest } from '../../contract.ts'
import type { QueueRecord } from '../../records.ts'
import type { Listed } from '../lanes.ts'
import { addStarts } from '../lanes.ts'
import type { Transaction } from '../session.ts'
import { NOW } from '../session.ts'

/** Of each queue and definition; more would take its time. */
const MOST_PROMOTED = 1_000

/**
 * store/transitions.ts, `promote`, for many at once. What others have locked is theirs to promote, or is left for the
 * next time: it is due still. $1 the instant (null: the database's), $2 queues, $3 definitions, $4 any version, $5 the
 * version, $6 at most so many.
 */
export const PROMOTE = `
with clock as materialized (select coalesce($1::bigint, ${NOW}) as now)
update perdure.runs r set status = 'ENQUEUED', due_at = null
from (
  select due.seq
  from unnest($2::text[]) as q (queue) cross join unnest($3::text[]) as d (definition) cross join lateral (
    select r.seq from perdure.runs r
    where r.status = 'DELAYED' and r.lane is not null and r.queue = q.queue and r.definition = d.definition
      and r.due_at <= (select now from clock) and ($4::boolean or r.version is null or r.version = $5::text)
    order by r.due_at, r.seq limit $6::bigint for no key update of r skip locked) due) due
where r.seq = due.seq
returning r.queue, r.lane, r.definition, r.version`

/** `queues`: the registered ones, as they are. */
export async function promoteDue(
  transaction: Transaction,
  { sources, definitions, version }: ClaimRequest,
  queues: ReadonlyMap<string, QueueRecord>,
  now: EpochMs | null,
): Promise<void> {
  const names = [...new Set(definitions.map(({ name }) => name))]
  const open = sources.filter(({ queue }) => queue === null || queues.get(queue)?.paused !== true)
  const rows = await transaction.query(PROMOTE, [
    ...[now, open.map(({ queue }) => queue ?? ''), names, version === null, version, MOST_PROMOTED],
  ])
  const promoted = rows.flatMap((row): readonly Listed[] => {
    const [queue, lane] = [text(row[0]), textOrNull(row[1])]
    if (lane === null || queues.get(queue)?.partitioned !== true) return []
    return [{ queue, lane, definition: text(row[2]), version: textOrNull(row[3]) }]
  })
  await addStarts(transaction, promoted)
}
