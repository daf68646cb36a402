/** What a source may still be given in this claim: by the claimant's own room, and by the limits of each lane. */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimSource } from '../../contract.ts'
import type { QueueRecord, RunRecord } from '../../records.ts'
import type { Ledger } from '../ledger.ts'
import { opensAfter, startsAllowed } from '../ledger.ts'
import type { SurveyedSource } from './survey.ts'

/** Of one lane; each may be infinite. */
export interface LaneRoom {
  readonly lane: string
  /** Within the limits of the queue: of runs that count, and of starts. */
  global: number
  rate: number
  /** Within the claimant's own limit for a lane. */
  own: number
  started: number
  readonly ledger: Ledger | null
}

export class Room {
  readonly surveyed: SurveyedSource
  /** Of what it starts: once all is locked, so later than the survey. */
  startedAt: EpochMs
  readonly #now: EpochMs
  readonly #lanes = new Map<string, LaneRoom>()
  readonly #given = new Map<string, number>()
  #left: number

  /** `given`: runs that the claimant was given before, when the request came for the first time. */
  constructor(surveyed: SurveyedSource, given: readonly RunRecord[], now: EpochMs) {
    this.surveyed = surveyed
    this.#now = now
    this.startedAt = now
    this.#left = this.queue?.paused === true ? 0 : surveyed.source.room
    for (const { queue, lane } of given) {
      if (queue !== surveyed.source.queue) continue
      this.#left -= 1
      if (lane !== null) this.#given.set(lane, (this.#given.get(lane) ?? 0) + 1)
    }
  }

  get source(): ClaimSource {
    return this.surveyed.source
  }

  get queue(): QueueRecord | null {
    return this.surveyed.queue
  }

  /** How many runs more, whatever their lane. */
  get left(): number {
    return this.#left
  }

  /** What is known of a lane the first time counts. */
  lane(lane: string, active: number, ledger: Ledger | null): LaneRoom {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const limit = this.queue?.globalConcurrency ?? Number.POSITIVE_INFINITY
    const rate = startsAllowed(this.queue?.rateLimit ?? null, ledger, this.#now)
    const room = { lane, global: limit - active, rate, own: this.#ownRoom(lane), started: 0, ledger }
    this.#lanes.set(lane, room)
    return room
  }

  mayStart({ global, rate, own }: LaneRoom): boolean {
    return this.#left > 0 && global > 0 && rate > 0 && own > 0
  }

  mayResume({ global, own }: LaneRoom): boolean {
    return this.#left > 0 && own > 0 && (global > 0 || !this.#resumesNeedRoom)
  }

  start(lane: LaneRoom): void {
    this.#left -= 1
    lane.own -= 1
    lane.global -= 1
    lane.rate -= 1
    lane.started += 1
  }

  resume(lane: LaneRoom): void {
    this.#left -= 1
    lane.own -= 1
    // Otherwise it has been counted all the time.
    if (this.#resumesNeedRoom) lane.global -= 1
  }

  /** When the rate limit lets the next run start, after so many starts; 0: now, null: it is not known. */
  opensAfter({ ledger }: LaneRoom, started: number): EpochMs | null {
    const starts = { count: started, at: this.startedAt }
    return opensAfter(this.queue?.rateLimit ?? null, ledger, starts, this.#now)
  }

  get #resumesNeedRoom(): boolean {
    return this.queue?.releaseWhileWaiting === true
  }

  #ownRoom(lane: string): number {
    const { lanes } = this.source
    if (lanes === null) return Number.POSITIVE_INFINITY
    return lanes.limit - (lanes.running.get(lane) ?? 0) - (this.#given.get(lane) ?? 0)
  }
}
