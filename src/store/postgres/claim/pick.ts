/**
 * Locks the runs of a plan, never more of them than are claimed then, and loads them.
 *
 * Of a queue without limits others may claim at the same time: of each list as many are taken as are planned, the first
 * that nobody else has locked. The row of the queue is kept FOR SHARE, so that its limits can't change; if they have
 * changed already, nothing is found there. Of a queue with limits, whose row the claim holds alone, exactly those that
 * are planned are taken, less those that others (a cancellation, a start of the same run) have locked.
 */
import type { Listed } from '../lanes.ts'
import { lockLanes } from '../lanes.ts'
import type { Row, Transaction } from '../session.ts'
import { NOW } from '../session.ts'
import type { Candidate } from './candidate.ts'
import { CANDIDATE_COLUMNS, CANDIDATE_WIDTH, toCandidate } from './candidate.ts'
import type { Pick, Plan, Turn } from './plan.ts'
import { isLimited } from './plan.ts'

/** $1 queues, $2 definitions, $3 counts of the lists; $4 any version, $5 the version, $6 the instant. */
function ofLists(runs: string, order: string): string {
  return `
with queue as materialized (
  select q.name, not (q.paused or q.partitioned or q.global_concurrency is not null or q.rate_limit is not null) as open
  from perdure.queues q where q.name = any ($1::text[]) order by q.name for share)
select ${CANDIDATE_COLUMNS}, ${NOW}
from unnest($1::text[], $2::text[], $3::bigint[]) as a (queue, definition, count)
left join queue q on q.name = a.queue
cross join lateral (
  select * from perdure.runs r
  where ${runs} and r.queue = a.queue and r.lane = '' and r.definition = a.definition
    and ($4::boolean or r.version is null or r.version = $5::text) and coalesce(q.open, true)
  order by ${order} limit a.count for no key update of r skip locked) r`
}

export const PICK_STARTS = ofLists(`r.status = 'ENQUEUED'`, 'r.rank, r.seq')
export const PICK_RESUMES = ofLists(
  `r.status = 'WAITING' and r.due_at is not null and r.due_at <= $6::bigint`,
  'r.due_at, r.seq',
)

/** $1 places, $2 the instant. */
export const PICK_PLANNED = `
select ${CANDIDATE_COLUMNS}, ${NOW}
from unnest($1::bigint[]) as a (seq)
cross join lateral (
  select * from perdure.runs r
  where r.seq = a.seq and r.lane is not null
    and (r.status = 'ENQUEUED' or (r.status = 'WAITING' and r.due_at is not null and r.due_at <= $2::bigint))
  for no key update of r skip locked) r`

export interface Picked {
  readonly candidates: readonly Candidate[]
  /** Rows of lanes, locked. */
  readonly lanes: readonly Listed[]
  /** As the database told it once all was locked; undefined: nothing was found. */
  readonly databaseNow: unknown
}

/** `turns`: the lanes that the claim leaves otherwise than it found them. */
export async function pick(
  transaction: Transaction,
  plan: Plan,
  turns: readonly Turn[],
  version: string | null,
): Promise<Picked> {
  const planned = plan.picks.filter(({ room }) => isLimited(room.queue))
  const listed = plan.picks.filter(({ room }) => !isLimited(room.queue))
  const gate = [version === null, version]
  const starts = countsOf(listed, 'start')
  const resumes = countsOf(listed, 'resume')
  const asked: Promise<readonly Row[]>[] = []
  if (resumes[0].length > 0) asked.push(transaction.query(PICK_RESUMES, [...resumes, ...gate, plan.now]))
  if (starts[0].length > 0) asked.push(transaction.query(PICK_STARTS, [...starts, ...gate]))
  if (planned.length > 0) asked.push(transaction.query(PICK_PLANNED, [planned.map(({ seq }) => seq), plan.now]))
  const lanes = lockLanes(
    transaction,
    turns.map(({ room, lane }) => ({ queue: room.source.queue ?? '', lane: lane.lane })),
  )
  const [locked, ...found] = await Promise.all([lanes, ...asked])
  const rows = found.flat()
  return {
    candidates: rows.map(toCandidate),
    lanes: locked,
    databaseNow: rows.at(-1)?.[CANDIDATE_WIDTH],
  }
}

/** Of each list, how many are planned: queues, definitions, counts. */
function countsOf(picks: readonly Pick[], work: Pick['work']): readonly [string[], string[], number[]] {
  const counts = new Map<string, { readonly queue: string; readonly definition: string; count: number }>()
  for (const { room, definition, work: its } of picks) {
    if (its !== work) continue
    const queue = room.source.queue ?? ''
    const key = JSON.stringify([queue, definition])
    const list = counts.get(key) ?? { queue, definition, count: 0 }
    counts.set(key, list)
    list.count += 1
  }
  const lists = [...counts.values()]
  return [lists.map(({ queue }) => queue), lists.map(({ definition }) => definition), lists.map(({ count }) => count)]
}
