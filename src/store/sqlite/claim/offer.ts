/** A run that may be claimed next, and the room that it takes. */
import type { Candidate } from './candidate.ts'
import type { LaneRoom, Room } from './room.ts'

export interface Offer extends Candidate {
  readonly room: Room
  readonly lane: LaneRoom
}
