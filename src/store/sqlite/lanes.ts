/**
 * The lanes of partitioned queues that have something to claim, so that a claim finds them without a look at the runs,
 * and without one at lanes that are closed.
 *
 * A row stands for the runs of one lane, definition and version: enqueued ones (`work` 'start', of which there is at
 * least one), or suspended ones that time will resume ('resume'). `place` is where it comes in the order: of starts,
 * the turn of the lane; of resumes, when the first run is due (`run`: its `seq`, for those due at the same instant).
 *
 * `ready_at` says when there may be room: 0: now; later: when its rate limit opens; null: once a run of the lane ends
 * or lets go of its claim. `full_for` names the owners who have their fill of the lane, each until one of its claims
 * there ends, so that none keeps coming back to it. Both may say too early that there is room, which the claim that
 * finds out corrects; never too late. So whatever can open a lane comes by here.
 */
import { invariant } from '../../core/invariant.ts'
import { number, text } from '../columns.ts'
import type { QueueRecord, RunRecord } from '../records.ts'
import type { Database } from './database.ts'

/** A run of a partitioned queue, and of one of its lanes. */
export type LanedRun = RunRecord & Laned
interface Laned {
  readonly queue: string
  readonly lane: string
}
/** The runs that a row stands for. */
type Listed = Laned & Pick<RunRecord, 'definition' | 'version'>

/** The queues as a transaction finds them. */
interface KnownQueues {
  queue(name: string): QueueRecord | null
}

/** On a plain queue, and the internal one, every run is in lane ''; a partitioned one may have runs in that, too. */
export function isLaned(queues: KnownQueues, run: RunRecord): run is LanedRun {
  if (run.queue === null || run.lane === null) return false
  return run.lane !== '' || queues.queue(run.queue)?.partitioned === true
}

/** Here a version is part of a key, which can't be null. */
const NO_VERSION = ''

export function toLaneVersion(version: string | null): string {
  return version === null ? NO_VERSION : `=${version}`
}

export function fromLaneVersion(column: unknown): string | null {
  return column === NO_VERSION ? null : text(column).slice(1)
}

export const STARTS_OF_LANE = `
select definition, version, place from perdure_lanes where queue = ? and lane = ? and work = 'start'`
export const NEXT_TURN = 'update perdure_queues set turns = turns + 1 where name = ? returning turns'
export const INSERT_START = `
insert into perdure_lanes (queue, lane, work, definition, version, place, run, ready_at, full_for)
values (?, ?, 'start', ?, ?, ?, 0, 0, '')`

/** An enqueued run has come. A lane without any goes to the back. */
export function addStart(database: Database, { queue, lane, definition, version }: Listed): void {
  const rows = database.prepare(STARTS_OF_LANE).all(queue, lane)
  if (rows.some((row) => row[0] === definition && row[1] === toLaneVersion(version))) return
  const place = rows[0] === undefined ? nextTurn(database, queue) : number(rows[0][2])
  database.prepare(INSERT_START).run(queue, lane, definition, toLaneVersion(version), place)
}

export function nextTurn(database: Database, queue: string): number {
  const row = database.prepare(NEXT_TURN).get(queue)
  invariant(row !== undefined, `queue ${queue} has lanes, but is not registered`)
  return number(row[0])
}

export const DELETE_EMPTY_START = `
delete from perdure_lanes where queue = ? and lane = ? and work = 'start' and definition = ? and version = ?
  and not exists (select 1 from perdure_runs r indexed by perdure_runs_claimable
    where r.status = 'ENQUEUED' and r.queue = perdure_lanes.queue and r.lane = perdure_lanes.lane
      and r.definition = perdure_lanes.definition and r.version is ?)`

/** An enqueued run has left. */
export function removeStart(database: Database, { queue, lane, definition, version }: Listed): void {
  database.prepare(DELETE_EMPTY_START).run(queue, lane, definition, toLaneVersion(version), version)
}

export const FIRST_DUE_OF_LANE = `
select due_at, seq from perdure_runs indexed by perdure_runs_suspended
where status = 'WAITING' and due_at is not null and queue = ? and lane = ? and definition = ? and version is ?
order by due_at, seq limit 1`
export const UPSERT_RESUME = `
insert into perdure_lanes (queue, lane, work, definition, version, place, run, ready_at, full_for)
values (?, ?, 'resume', ?, ?, ?, ?, 0, '')
on conflict (queue, lane, work, definition, version) do update set place = excluded.place, run = excluded.run`
export const DELETE_RESUME = `
delete from perdure_lanes where queue = ? and lane = ? and work = 'resume' and definition = ? and version = ?`

/** A suspended run has come, has left, or is due at another instant. */
export function updateResume(database: Database, { queue, lane, definition, version }: Listed): void {
  const first = database.prepare(FIRST_DUE_OF_LANE).get(queue, lane, definition, version)
  if (first === undefined) {
    database.prepare(DELETE_RESUME).run(queue, lane, definition, toLaneVersion(version))
  } else {
    const [dueAt, seq] = [number(first[0]), number(first[1])]
    database.prepare(UPSERT_RESUME).run(queue, lane, definition, toLaneVersion(version), dueAt, seq)
  }
}

/** Each owner stands as a JSON text between two of these, which no JSON text contains. */
const MARK = '\n'

const marked = (json: string): string => `${MARK}${json}${MARK}`

/** `full_for` of a lane of which the rows have these now, with one owner more. Sorted, so that few differ. */
export function withOwner(all: readonly string[], owner: string): string {
  const owners = new Set(all.flatMap((fullFor) => fullFor.split(MARK)).filter((name) => name !== ''))
  return [...owners.add(JSON.stringify(owner))].sort().map(marked).join('')
}

export function isFullFor(fullFor: string, owner: string): boolean {
  return fullFor.includes(marked(JSON.stringify(owner)))
}

export const OPEN_LANE = `
update perdure_lanes set ready_at = coalesce(ready_at, 0), full_for = replace(full_for, ?, '')
where queue = ? and lane = ? and (ready_at is null or instr(full_for, ?) > 0)`

/** A run has let go of what it held of the lane: of its claim, or of its turn. */
export function openLane(database: Database, { queue, lane, owner }: LanedRun): void {
  const mark = marked(JSON.stringify(owner))
  database.prepare(OPEN_LANE).run(mark, queue, lane, mark)
}

export const REOPEN_LANES = `
update perdure_lanes set ready_at = 0, full_for = ''
where queue = ? and (ready_at is null or ready_at > 0 or full_for <> '')`

/** The limits of the queue are others now. */
export function reopenLanes(database: Database, queue: string): void {
  database.prepare(REOPEN_LANES).run(queue)
}
