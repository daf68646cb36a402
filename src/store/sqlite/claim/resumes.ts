/**
 * Suspended runs that are due, by their due instant and then `seq`, over all sources.
 *
 * Of a queue with lanes, lanes are walked in the order of what is due in them first, so that a lane without room is
 * passed over at once, whatever is due in it.
 */
import type { EpochMs } from '../../../core/clock.ts'
import { invariant } from '../../../core/invariant.ts'
import { number, text } from '../../columns.ts'
import type { Database } from '../database.ts'
import { toLaneVersion } from '../lanes.ts'
import type { Candidate } from './candidate.ts'
import { CANDIDATE_COLUMNS, toCandidate } from './candidate.ts'
import { Line } from './line.ts'
import type { List } from './lists.ts'
import type { Offer } from './offer.ts'
import type { Room } from './room.ts'

/** Rows read at a time. */
const PAGE_ROWS = 32

interface Place {
  readonly dueAt: EpochMs
  readonly seq: number
}
interface Due extends Place {
  readonly lane: string
  readonly list: DueList
}

const BEFORE_ALL: Place = { dueAt: Number.MIN_SAFE_INTEGER, seq: 0 }

/** The next is looked for when it is asked for, once the one before has been claimed. */
export function* dueRuns(
  database: Database,
  lists: readonly { readonly list: List; readonly room: Room }[],
  now: EpochMs,
): Generator<Offer, undefined> {
  const line = new Line<Due>(isDueBefore)
  for (const { list, room } of lists) line.add(new DueList(database, list, room, now).next())
  for (let due = line.shift(); due !== undefined; due = line.shift()) {
    const { list } = due
    const lane = list.room.lane(due.lane)
    const open = list.room.mayResume(lane)
    if (open) yield { ...candidateAt(database, due.seq), room: list.room, lane }
    if (list.room.left <= 0) continue
    if (open) line.add(list.nextInLane(due))
    if (list.laned) line.add(list.next())
  }
}

function isDueBefore(a: Due, b: Due): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.seq < b.seq)
}

export const CANDIDATE_BY_SEQ = `select ${CANDIDATE_COLUMNS} from perdure_runs where seq = ?`

function candidateAt(database: Database, seq: number): Candidate {
  const row = database.prepare(CANDIDATE_BY_SEQ).get(seq)
  invariant(row !== undefined, `an index names the run at place ${seq}, which is not there`)
  return toCandidate(row)
}

export const DUE_PAGE = `
select due_at, seq from perdure_runs indexed by perdure_runs_suspended
where status = 'WAITING' and due_at is not null and queue is ? and lane = ? and definition = ? and version is ?
  and due_at <= ? and (due_at, seq) > (?, ?)
order by due_at, seq limit ?`
export const DUE_LANES = `
select place, run, lane from perdure_lanes indexed by perdure_lanes_ready
where queue = ? and work = 'resume' and definition = ? and version = ? and full_for = ? and ready_at = 0
  and place <= ? and (place, run) > (?, ?)
order by place, run limit ?`

class DueList {
  readonly room: Room
  readonly laned: boolean
  readonly #database: Database
  readonly #list: List
  readonly #now: EpochMs
  readonly #seen = new Set<string>()
  #page: readonly Due[] = []
  #at = 0
  #after = BEFORE_ALL

  constructor(database: Database, list: List, room: Room, now: EpochMs) {
    this.#database = database
    this.#list = list
    this.room = room
    this.laned = list.work === 'resume in lanes'
    this.#now = now
  }

  /** What is due next in another lane; of a plain queue, the first of all. */
  next(): Due | undefined {
    for (;;) {
      if (this.#at === this.#page.length) {
        this.#page = this.laned ? this.#lanes() : this.#runs('', this.#after, PAGE_ROWS)
        this.#at = 0
      }
      const due = this.#page[this.#at]
      if (due === undefined) return undefined
      this.#at += 1
      this.#after = due
      // A lane that has given a run stands further back now, and goes on by itself.
      if (!this.laned || !this.#seen.has(due.lane)) {
        this.#seen.add(due.lane)
        return due
      }
    }
  }

  nextInLane(due: Due): Due | undefined {
    return this.laned ? this.#runs(due.lane, due, 1)[0] : this.next()
  }

  #runs(lane: string, after: Place, limit: number): readonly Due[] {
    const { queue, definition, version } = this.#list
    return this.#database
      .prepare(DUE_PAGE)
      .all(queue, lane, definition, version, this.#now, after.dueAt, after.seq, limit)
      .map((row) => ({ dueAt: number(row[0]), seq: number(row[1]), lane, list: this }))
  }

  #lanes(): readonly Due[] {
    const { queue, definition, version, fullFor } = this.#list
    return this.#database
      .prepare(DUE_LANES)
      .all(queue, definition, toLaneVersion(version), fullFor, this.#now, this.#after.dueAt, this.#after.seq, PAGE_ROWS)
      .map((row) => ({ dueAt: number(row[0]), seq: number(row[1]), lane: text(row[2]), list: this }))
  }
}
