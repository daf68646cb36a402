/** Delayed runs that are due become claimable, at their place. */
import type { EpochMs } from '../../../core/clock.ts'
import { number, textOrNull } from '../../columns.ts'
import type { Database } from '../database.ts'
import { addStart } from '../lanes.ts'
import type { List } from './lists.ts'
import type { Survey } from './survey.ts'

/** More would block the event loop for too long. */
const MOST_PROMOTED = 1_000

export const DUE_DELAYED = `
select due_at, seq, lane from perdure_runs indexed by perdure_runs_delayed
where status = 'DELAYED' and lane is not null and queue is ? and definition = ? and version is ? and due_at <= ?
order by due_at, seq limit ?`
/** store/transitions.ts, `promote`, for many at once. */
export const PROMOTE = `
update perdure_runs set status = 'ENQUEUED', due_at = null where seq in (select value from json_each(?))`

interface Delayed {
  readonly dueAt: EpochMs
  readonly seq: number
  readonly lane: string | null
  readonly list: List
}

/** False: some that are due were left for the next time. */
export function promoteDue(database: Database, { lists, sources, now }: Survey): boolean {
  const laned = new Set(sources.filter((source) => source.laned).map(({ source }) => source.queue))
  const due = lists
    .filter(({ work }) => work === 'promote')
    .flatMap((list) => delayedOf(database, list, now))
    .sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq)
  const promoted = due.slice(0, MOST_PROMOTED)
  if (promoted.length > 0) database.prepare(PROMOTE).run(JSON.stringify(promoted.map(({ seq }) => seq)))
  for (const { lane, list } of promoted) {
    const { queue, definition, version } = list
    if (queue === null || lane === null || !laned.has(queue)) continue
    addStart(database, { queue, lane, definition, version })
  }
  return due.length < MOST_PROMOTED
}

function delayedOf(database: Database, list: List, now: EpochMs): readonly Delayed[] {
  const { queue, definition, version } = list
  return database
    .prepare(DUE_DELAYED)
    .all(queue, definition, version, now, MOST_PROMOTED)
    .map((row) => ({ dueAt: number(row[0]), seq: number(row[1]), lane: textOrNull(row[2]), list }))
}
