/** Removes what nobody needs any more, a little at a time. */
import type { EpochMs } from '../../core/clock.ts'
import { realScheduler } from '../../core/scheduler.ts'
import { number } from '../columns.ts'
import type { SweepOutcome, SweepRequest } from '../contract.ts'
import type { Retention, TerminalStatus } from '../records.ts'
import { LONGEST_WORK_MS } from './commands.ts'
import type { Database } from './database.ts'
import { queuesOf } from './listing.ts'
import { findQueue } from './queues.ts'
import { areReceiptsOld, sweepReceipts } from './receipts.ts'
import { NOTE_LAST_PLACE } from './runs.ts'

/** Runs in one transaction, and receipts. */
const MOST_REMOVED = 200
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
  readonly queue: string | null
  readonly status: TerminalStatus
  readonly keptMs: number
}

/** The answer of a sweep that would remove nothing; undefined: one that would. */
export function lookForNothing(database: Database, request: SweepRequest): SweepOutcome | undefined {
  const now = database.clock.now()
  const nextAt = removable(database, endedLists(database, request), 1)[0]?.at ?? null
  const due = (nextAt !== null && nextAt <= now) || areReceiptsOld(database, now)
  return due ? undefined : { removed: 0, nextAt }
}

/** Inside a transaction. */
export function sweep(database: Database, request: SweepRequest): SweepOutcome {
  const start = realScheduler.monotonic()
  const now = database.clock.now()
  const receipts = sweepReceipts(database, now, MOST_RECEIPTS_REMOVED)
  const lists = endedLists(database, request)
  const limit = Math.min(request.limit, MOST_REMOVED)
  const due = removable(database, lists, limit).filter(({ at }) => at <= now)
  if (due.length > 0) database.prepare(NOTE_LAST_PLACE).run()
  let removed = 0
  for (const { seq } of due) {
    if (removed > 0 && realScheduler.monotonic() - start >= LONGEST_WORK_MS) break
    remove(database, seq)
    removed += 1
  }
  const left = removable(database, lists, 1)[0]?.at ?? null
  return { removed, nextAt: receipts === MOST_RECEIPTS_REMOVED ? Math.min(now, left ?? now) : left }
}

function endedLists(database: Database, { definitions }: SweepRequest): readonly EndedList[] {
  return definitions.flatMap(({ name, retention }) =>
    queuesOf(database, name).flatMap((queue) => {
      const inQueue = queue === null ? null : (findQueue(database, queue)?.retention ?? null)
      const kept = retention ?? inQueue
      return KEPT.flatMap(([status, key]) => {
        const keptMs = kept?.[key] ?? null
        return keptMs === null ? [] : [{ definition: name, queue, status, keptMs }]
      })
    }),
  )
}

export const FIRST_ENDED = `
select ended_at, seq from perdure_runs indexed by perdure_runs_ended
where definition = ? and queue is ? and status = ? and ended_at is not null order by ended_at, seq limit ?`

/** The runs that are to be removed first, over all lists, and when. */
function removable(
  database: Database,
  lists: readonly EndedList[],
  limit: number,
): readonly { readonly seq: number; readonly at: EpochMs }[] {
  return lists
    .flatMap(({ definition, queue, status, keptMs }) =>
      database
        .prepare(FIRST_ENDED)
        .all(definition, queue, status, limit)
        // One that has ended exactly so long ago is kept still.
        .map((row) => ({ at: number(row[0]) + keptMs + 1, seq: number(row[1]) })),
    )
    .sort((a, b) => a.at - b.at)
    .slice(0, limit)
}

/** A run and all that is kept under its place. What it waited for went when it ended. */
export const REMOVALS = [
  'delete from perdure_inputs where run = ?',
  'delete from perdure_endings where run = ?',
  'delete from perdure_checkpoints where run = ?',
  'delete from perdure_past_checkpoints where run = ?',
  'delete from perdure_attempts where run = ?',
  'delete from perdure_runs where seq = ?',
]

function remove(database: Database, seq: number): void {
  for (const sql of REMOVALS) database.prepare(sql).run(seq)
}
