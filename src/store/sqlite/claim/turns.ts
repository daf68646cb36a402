/**
 * Enqueued runs of a queue with lanes: a run of each lane in turn, the lane first that has waited longest for its turn.
 *
 * Lanes are read in that order from their list (lanes.ts), and one that was served goes to its end. So a claim costs
 * what it takes, however many lanes there are. A lane that turns out to be closed is noted as such: no claim looks at
 * it again until something opens it.
 */
import type { EpochMs } from '../../../core/clock.ts'
import { invariant } from '../../../core/invariant.ts'
import { number, text } from '../../columns.ts'
import type { Database } from '../database.ts'
import { fromLaneVersion, STARTS_OF_LANE, toLaneVersion } from '../lanes.ts'
import type { Candidate } from './candidate.ts'
import { CANDIDATE_COLUMNS, precedes, toCandidate } from './candidate.ts'
import type { Claimant } from './claimant.ts'
import { serves } from './claimant.ts'
import { Line } from './line.ts'
import type { List } from './lists.ts'
import type { Offer } from './offer.ts'
import type { LaneRoom, Room } from './room.ts'
import { hasRateLimit } from './sources.ts'
import type { Traces } from './traces.ts'

/** Rows read at a time. */
const PAGE_ROWS = 32
/** More would block the event loop for too long. */
const MOST_OPENED = 1_000

/** Lanes that their rate limit lets start again: of those that open between two instants. */
export const OPEN_BY_TIME = `
update perdure_lanes set ready_at = 0 where (queue, lane, work, definition, version) in (
  select queue, lane, work, definition, version from perdure_lanes indexed by perdure_lanes_ready
  where queue = ? and work = 'start' and definition = ? and version = ? and full_for = ? and ready_at > ?
    and ready_at <= ?
  limit ?)`
export const READY_LANES = `
select place, lane from perdure_lanes indexed by perdure_lanes_ready
where queue = ? and work = 'start' and definition = ? and version = ? and full_for = ? and ready_at = 0 and place > ?
order by place limit ?`
export const FIRST_OF_LANE = `
select ${CANDIDATE_COLUMNS} from perdure_runs indexed by perdure_runs_claimable
where status = 'ENQUEUED' and queue = ? and lane = ? and definition = ? and version is ?
order by rank, seq limit 1`

interface Head {
  readonly place: number
  readonly lane: string
  readonly list: LaneList
}

export class Turns {
  readonly #database: Database
  readonly #queue: string
  readonly #room: Room
  readonly #claimant: Claimant
  readonly #line = new Line<Head>((a, b) => a.place < b.place)
  readonly #seen = new Set<string>()
  /** Lanes that this claim has served, which wait for their next turn. */
  readonly #again: LaneRoom[] = []
  readonly #traces: Traces

  constructor(
    database: Database,
    lists: readonly List[],
    { room, claimant, traces }: { readonly room: Room; readonly claimant: Claimant; readonly traces: Traces },
  ) {
    const { queue } = room
    invariant(queue !== null, 'only a registered queue has lanes')
    this.#database = database
    this.#queue = queue.name
    this.#room = room
    this.#claimant = claimant
    this.#traces = traces
    for (const list of lists) {
      if (queue.rateLimit !== null) openByTime(database, list, claimant.now, queue.rateLimit.periodMs)
      this.#line.add(new LaneList(database, list).next())
    }
  }

  /** undefined: there is none, or no room for one. What it has answered is taken. */
  next(): Offer | undefined {
    while (this.#room.left > 0) {
      const lane = this.#nextLane()
      if (lane === undefined) return undefined
      if (!this.#room.mayStart(lane)) continue
      const candidate = this.#firstOf(lane.lane)
      if (candidate === undefined) continue
      this.#again.push(lane)
      this.#traces.served.push(lane.lane)
      return { run: candidate.run, input: candidate.input, room: this.#room, lane }
    }
    return undefined
  }

  /**
   * Passes the lanes that their limits keep from starting a run now, up to the first that may: `Traces` has it written
   * down. So the claim can tell when the next rate limit opens.
   */
  passClosed(): void {
    if (!hasRateLimit(this.#room.queue)) return
    let lane = this.#nextLane()
    while (lane !== undefined && (lane.global <= 0 || lane.rate <= 0)) lane = this.#nextLane()
  }

  /** Lanes that have not had their turn come before those that have. */
  #nextLane(): LaneRoom | undefined {
    for (let head = this.#line.shift(); head !== undefined; head = this.#line.shift()) {
      this.#line.add(head.list.next())
      if (this.#seen.has(head.lane)) continue
      this.#seen.add(head.lane)
      return this.#room.lane(head.lane)
    }
    return this.#again.shift()
  }

  #firstOf(lane: string): Candidate | undefined {
    let first: Candidate | undefined
    for (const row of this.#database.prepare(STARTS_OF_LANE).all(this.#queue, lane)) {
      const [definition, version] = [text(row[0]), fromLaneVersion(row[1])]
      if (!serves(this.#claimant, definition, version)) continue
      this.#traces.looked.push({ lane, definition, version })
      const found = this.#database.prepare(FIRST_OF_LANE).get(this.#queue, lane, definition, version)
      const candidate = found === undefined ? undefined : toCandidate(found)
      if (candidate !== undefined && (first === undefined || precedes(candidate, first))) first = candidate
    }
    return first
  }
}

function openByTime(database: Database, list: List, now: EpochMs, periodMs: number): void {
  const { queue, definition, version, fullFor } = list
  const open = (after: EpochMs, until: EpochMs): void => {
    database.prepare(OPEN_BY_TIME).run(queue, definition, toLaneVersion(version), fullFor, after, until, MOST_OPENED)
  }
  open(0, now)
  // What opens so late was closed before the clock was set back.
  open(now + periodMs, Number.MAX_SAFE_INTEGER)
}

class LaneList {
  readonly #database: Database
  readonly #list: List
  #page: readonly Head[] = []
  #at = 0
  #after = Number.MIN_SAFE_INTEGER

  constructor(database: Database, list: List) {
    this.#database = database
    this.#list = list
  }

  next(): Head | undefined {
    if (this.#at === this.#page.length) {
      this.#page = this.#read()
      this.#at = 0
    }
    const head = this.#page[this.#at]
    if (head === undefined) return undefined
    this.#at += 1
    this.#after = head.place
    return head
  }

  #read(): readonly Head[] {
    const { queue, definition, version, fullFor } = this.#list
    return this.#database
      .prepare(READY_LANES)
      .all(queue, definition, toLaneVersion(version), fullFor, this.#after, PAGE_ROWS)
      .map((row) => ({ place: number(row[0]), lane: text(row[1]), list: this }))
  }
}
