/** When time alone may make something claimable. */
import type { EpochMs } from '../../../core/clock.ts'
import type { Plan } from './plan.ts'
import { hasMore, plainLane } from './plan.ts'
import type { LaneRoom, Room } from './room.ts'

/** Once the plans are carried out; null: no such instant is known. */
export function nextInstant(plans: readonly Plan[]): EpochMs | null {
  const instants = plans.flatMap((plan) => [
    ...plan.rooms.flatMap((room) => [room.surveyed.nextDue, room.surveyed.nextOpening, opensPlain(room)]),
    ...plan.turns.map((turn) => (hasMore(turn) ? opens(turn.room, turn.lane) : null)),
  ])
  const next = Math.min(...instants.map((instant) => instant ?? Number.POSITIVE_INFINITY))
  return next === Number.POSITIVE_INFINITY ? null : next
}

function opensPlain(room: Room): EpochMs | null {
  const lane = plainLane(room)
  return room.surveyed.starts.length > lane.started ? opens(room, lane) : null
}

/** null: it is open, or not closed by time. */
function opens(room: Room, lane: LaneRoom): EpochMs | null {
  if (lane.global <= 0) return null
  const at = room.opensAfter(lane, lane.started)
  return at === 0 ? null : at
}
