/** What a claim leaves behind in the lanes of a queue: who comes next, and which are closed until when. */
import type { EpochMs } from '../../../core/clock.ts'
import { invariant } from '../../../core/invariant.ts'
import { number, text } from '../../columns.ts'
import type { Database } from '../database.ts'
import { removeStart, withOwner } from '../lanes.ts'
import { laneOpensAt } from '../ledger.ts'
import type { Claimant } from './claimant.ts'
import type { LaneRoom, Room } from './room.ts'

export class Traces {
  /** Names of lanes in the order in which they gave a run. */
  readonly served: string[] = []
  /** Lists of lanes that were looked into, which may be empty now. */
  readonly looked: { readonly lane: string; readonly definition: string; readonly version: string | null }[] = []
}

export const TAKE_TURNS = 'update perdure_queues set turns = turns + ? where name = ? returning turns'

/** After all runs have been claimed, and their starts are in the ledger. */
export function leaveTraces(database: Database, room: Room, { served, looked }: Traces, claimant: Claimant): void {
  const { queue } = room
  if (queue === null) return
  for (const { lane, definition, version } of looked) {
    removeStart(database, { queue: queue.name, lane, definition, version })
  }
  const turns = new Map<string, number>()
  if (served.length > 0) {
    const last = database.prepare(TAKE_TURNS).get(served.length, queue.name)
    invariant(last !== undefined, `queue ${queue.name} vanished inside a transaction`)
    for (const [n, lane] of served.entries()) turns.set(lane, number(last[0]) - served.length + n + 1)
  }
  for (const lane of room.lanes) leaveLane(database, room, lane, { turn: turns.get(lane.lane) ?? null, claimant })
}

/** What isn't given stays as it is. */
export const CLOSE_STARTS = `
update perdure_lanes set place = coalesce(?, place), ready_at = ?, full_for = coalesce(?, full_for)
where queue = ? and lane = ? and work = 'start'`
export const CLOSE_RESUMES = `
update perdure_lanes set ready_at = ?, full_for = coalesce(?, full_for)
where queue = ? and lane = ? and work = 'resume'`

function leaveLane(
  database: Database,
  room: Room,
  lane: LaneRoom,
  { turn, claimant }: { readonly turn: number | null; readonly claimant: Claimant },
): void {
  const { queue } = room
  if (queue === null) return
  const startsAt = lane.global > 0 ? rateOpensAt(database, room, lane, claimant.now) : null
  const fullFor = lane.own > 0 ? null : fullForOwner(database, queue.name, lane, claimant.owner)
  if (turn !== null || startsAt !== 0 || fullFor !== null) {
    database.prepare(CLOSE_STARTS).run(turn, startsAt, fullFor, queue.name, lane.lane)
  }
  const resumesClosed = queue.releaseWhileWaiting && lane.global <= 0
  if (resumesClosed || fullFor !== null) {
    database.prepare(CLOSE_RESUMES).run(resumesClosed ? null : 0, fullFor, queue.name, lane.lane)
  }
}

/** 0: now. */
function rateOpensAt(database: Database, { queue }: Room, lane: LaneRoom, now: EpochMs): EpochMs | null {
  if (lane.rate > 0 || queue === null || queue.rateLimit === null) return 0
  if (lane.started === 0) return lane.opensAt
  return laneOpensAt(database, { queue: queue.name, lane: lane.lane }, queue.rateLimit, now)
}

export const HOLDS_IN_LANE = `
select 1 from perdure_runs indexed by perdure_runs_active
where queue = ? and lane = ? and status = 'PENDING' and status in ('PENDING', 'WAITING') and owner = ? limit 1`
export const FULL_FOR = 'select full_for from perdure_lanes where queue = ? and lane = ?'

/**
 * Only an owner with a claim in the lane is noted: the end of the claim is what strikes it out again. One whose claims
 * were lost, and who works on them still, is not.
 */
function fullForOwner(database: Database, queue: string, lane: LaneRoom, owner: string): string | null {
  const { lane: name, started, resumed } = lane
  const holds = started + resumed > 0 || database.prepare(HOLDS_IN_LANE).get(queue, name, owner) !== undefined
  if (!holds) return null
  return withOwner(
    database
      .prepare(FULL_FOR)
      .all(queue, name)
      .map((row) => text(row[0])),
    owner,
  )
}
