/**
 * Removes what nobody needs any more, a little at a time. Several processes may do so at once: each passes over what
 * another has in hand.
 */
import type { EpochMs } from '../../core/clock.ts'
import { number, numberOrNull, text } from '../columns.ts'
import type { SweepOutcome, SweepRequest } from '../contract.ts'
import type { Retention, TerminalStatus } from '../records.ts'
import type { Database } from './database.ts'
import { readInstant } from './instant.ts'
import { sweepReceipts } from './receipts.ts'
import type { Row, Transaction } from './session.ts'

/** Runs in one transaction, and receipts. */
const MOST_REMOVED = 1_000
const MOST_RECEIPTS_REMOVED = 1_000

const KEPT: readonly (readonly [TerminalStatus, keyof Retention])[] = [
  ['SUCCESS', 'success'],
  ['ERROR', 'error'],
  ['DEAD', 'dead'],
  ['CANCELLED', 'cancelled'],
]

/** Runs that have ended alike, of which the first to have ended goes first. */
interface EndedList {
  readonly definition: string
  /** '': the internal one. */
  readonly queue: string
  readonly status: TerminalStatus
  readonly keptMs: number
}

interface EndedRun {
  readonly seq: number
  readonly endedAt: EpochMs
  /** When it is to be removed. */
  readonly at: EpochMs
}

export async function sweep(database: Database, request: SweepRequest): Promise<SweepOutcome> {
  const limit = Math.min(request.limit, MOST_REMOVED)
  return await database.write(async (transaction) => {
    const now = await readInstant(transaction)
    const receipts = await sweepReceipts(transaction, now, MOST_RECEIPTS_REMOVED)
    const first = await firstToRemove(transaction, await endedLists(transaction, request), limit + 1)
    const due = first.filter(({ at }) => at <= now).slice(0, limit)
    const removed = await remove(transaction, due)
    const next = first.find(({ seq }) => !removed.has(seq))?.at ?? null
    const nextAt = receipts === MOST_RECEIPTS_REMOVED ? Math.min(now, next ?? now) : next
    return { removed: removed.size, nextAt }
  })
}

/** The queues that have ended runs of these definitions, each the next in the index; and what they keep. */
export const ENDED_ON = `
with recursive pairs (definition, queue) as (
  select asked.definition collate "C", (
    select queue from perdure.runs
    where ended_at is not null and definition = asked.definition order by queue limit 1)
  from unnest($1::text[]) as asked (definition)
  union all
  select p.definition, (
    select queue from perdure.runs
    where ended_at is not null and definition = p.definition and queue > p.queue order by queue limit 1)
  from pairs p where p.queue is not null)
select p.definition, p.queue, (kept ->> 'success')::float8, (kept ->> 'error')::float8, (kept ->> 'dead')::float8,
  (kept ->> 'cancelled')::float8
from pairs p left join perdure.queues q on q.name = p.queue
cross join lateral (select q.retention::json) as r (kept)
where p.queue is not null`

async function endedLists(transaction: Transaction, { definitions }: SweepRequest): Promise<readonly EndedList[]> {
  if (definitions.length === 0) return []
  const retentions = new Map(definitions.map(({ name, retention }) => [name, retention]))
  const rows = await transaction.query(ENDED_ON, [[...retentions.keys()]])
  return rows.flatMap((row) => {
    const definition = text(row[0])
    const kept = retentions.get(definition) ?? toRetention(row, 2)
    return KEPT.flatMap(([status, key]): readonly EndedList[] => {
      const keptMs = kept[key]
      return keptMs === null ? [] : [{ definition, queue: text(row[1]), status, keptMs }]
    })
  })
}

function toRetention(row: Row, at: number): Retention {
  return {
    success: numberOrNull(row[at]),
    error: numberOrNull(row[at + 1]),
    dead: numberOrNull(row[at + 2]),
    cancelled: numberOrNull(row[at + 3]),
  }
}

export const FIRST_ENDED = `
select r.seq, r.ended_at, l.kept_ms
from unnest($1::text[], $2::text[], $3::text[], $4::float8[]) as l (definition, queue, status, kept_ms)
cross join lateral (
  select seq, ended_at from perdure.runs
  where definition = l.definition and queue = l.queue and status = l.status and ended_at is not null
  order by ended_at limit $5) r
order by r.ended_at + l.kept_ms limit $5`

/** The runs that are to be removed first, over all lists. */
async function firstToRemove(
  transaction: Transaction,
  lists: readonly EndedList[],
  limit: number,
): Promise<readonly EndedRun[]> {
  if (lists.length === 0) return []
  const rows = await transaction.query(FIRST_ENDED, [
    lists.map(({ definition }) => definition),
    lists.map(({ queue }) => queue),
    lists.map(({ status }) => status),
    lists.map(({ keptMs }) => keptMs),
    limit,
  ])
  return rows.map((row) => {
    const endedAt = number(row[1])
    // One that has ended exactly so long ago is kept still.
    return { seq: number(row[0]), endedAt, at: endedAt + number(row[2]) + 1 }
  })
}

/** One that was requeued meanwhile has not ended then: the row is as it was found, or it is left alone. */
export const LOCK_ENDED = `
select r.seq from unnest($1::bigint[], $2::bigint[]) as e (seq, ended_at)
join perdure.runs r on r.seq = e.seq and r.ended_at = e.ended_at for update of r skip locked`
/** A run and all that is kept under its place. */
export const REMOVE = `
with inputs as (delete from perdure.inputs where run = any($1::bigint[])),
endings as (delete from perdure.endings where run = any($1::bigint[])),
checkpoints as (delete from perdure.checkpoints where run = any($1::bigint[])),
past_checkpoints as (delete from perdure.past_checkpoints where run = any($1::bigint[])),
attempts as (delete from perdure.attempts where run = any($1::bigint[])),
waits as (delete from perdure.waits where run = any($1::bigint[]))
delete from perdure.runs where seq = any($1::bigint[])`

/** Answers with the places of those that were removed. */
async function remove(transaction: Transaction, ended: readonly EndedRun[]): Promise<ReadonlySet<number>> {
  if (ended.length === 0) return new Set()
  const rows = await transaction.query(LOCK_ENDED, [ended.map(({ seq }) => seq), ended.map(({ endedAt }) => endedAt)])
  const locked = rows.map((row) => number(row[0]))
  await transaction.query(REMOVE, [locked])
  return new Set(locked)
}
