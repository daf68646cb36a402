/** What a source may still be given in this claim: by the claimant's own room, and by the limits of each lane. */
import type { EpochMs } from '../../../core/clock.ts'
import { number } from '../../columns.ts'
import type { ClaimSource } from '../../contract.ts'
import type { QueueRecord, RunRecord } from '../../records.ts'
import * as transitions from '../../transitions.ts'
import type { Database } from '../database.ts'
import { laneRateRoom, recordStarts } from '../ledger.ts'
import type { SurveyedSource } from './sources.ts'

/** Of one lane; each may be infinite. */
export interface LaneRoom {
  readonly lane: string
  /** Within the limits of the queue: of runs that count, and of starts. */
  global: number
  rate: number
  /** When the rate limit opens, if it is closed. */
  readonly opensAt: EpochMs | null
  /** Within the claimant's own limit for a lane. */
  own: number
  started: number
  resumed: number
}

/** Up to as many as are asked for. */
export const COUNT_HELD = `
select count(*) from (
  select 1 from perdure_runs indexed by perdure_runs_active
  where queue = ? and lane = ? and status = 'PENDING' and status in ('PENDING', 'WAITING') limit ?)`
export const COUNT_HELD_OR_WAITING = `
select count(*) from (
  select 1 from perdure_runs indexed by perdure_runs_active
  where queue = ? and lane = ? and status in ('PENDING', 'WAITING') limit ?)`

export class Room {
  readonly source: ClaimSource
  readonly queue: QueueRecord | null
  readonly laned: boolean
  readonly #database: Database
  readonly #now: EpochMs
  readonly #lanes = new Map<string, LaneRoom>()
  readonly #given = new Map<string, number>()
  #left: number

  constructor(database: Database, { source, queue, laned, paused }: SurveyedSource, now: EpochMs) {
    this.source = source
    this.queue = queue
    this.laned = laned
    this.#database = database
    this.#now = now
    this.#left = paused ? 0 : source.room
  }

  /** How many runs more, whatever their lane. */
  get left(): number {
    return this.#left
  }

  get lanes(): Iterable<LaneRoom> {
    return this.#lanes.values()
  }

  /** A run that the claimant was given before, when the request came for the first time. To be called first. */
  count({ lane }: RunRecord): void {
    this.#left -= 1
    if (lane !== null) this.#given.set(lane, (this.#given.get(lane) ?? 0) + 1)
  }

  lane(lane: string): LaneRoom {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const { rate, opensAt } = this.#rateRoom(lane)
    const own = this.#ownRoom(lane)
    const room = { lane, global: this.#globalRoom(lane), rate, opensAt, own, started: 0, resumed: 0 }
    this.#lanes.set(lane, room)
    return room
  }

  mayStart({ global, rate, own }: LaneRoom): boolean {
    return this.#left > 0 && global > 0 && rate > 0 && own > 0
  }

  mayResume({ global, own }: LaneRoom): boolean {
    return this.#left > 0 && own > 0 && (global > 0 || this.queue?.releaseWhileWaiting !== true)
  }

  /** `run` as it was before. */
  take(room: LaneRoom, run: RunRecord): void {
    this.#left -= 1
    room.own -= 1
    if (transitions.isStart(run)) {
      room.global -= 1
      room.rate -= 1
      room.started += 1
    } else {
      // Otherwise it has been counted all the time.
      if (this.queue?.releaseWhileWaiting === true) room.global -= 1
      room.resumed += 1
    }
  }

  /** Writes the starts into the ledger. */
  close(): void {
    if (this.queue === null || this.queue.rateLimit === null) return
    const { name, rateLimit } = this.queue
    for (const { lane, started } of this.#lanes.values()) {
      if (started === 0) continue
      recordStarts(this.#database, { queue: name, lane }, { rate: rateLimit, count: started, now: this.#now })
    }
  }

  #globalRoom(lane: string): number {
    if (this.queue === null || this.queue.globalConcurrency === null) return Number.POSITIVE_INFINITY
    const { name, globalConcurrency, releaseWhileWaiting } = this.queue
    const counted = releaseWhileWaiting ? COUNT_HELD : COUNT_HELD_OR_WAITING
    return globalConcurrency - number(this.#database.prepare(counted).get(name, lane, globalConcurrency)?.[0])
  }

  #rateRoom(lane: string): { readonly rate: number; readonly opensAt: EpochMs | null } {
    if (this.queue === null || this.queue.rateLimit === null) return { rate: Number.POSITIVE_INFINITY, opensAt: null }
    const { name: queue, rateLimit: rate } = this.queue
    // One more than can be taken, to know whether the limit is reached then.
    const asked = { rate, wanted: this.#left + 1, now: this.#now }
    const { room, opensAt } = laneRateRoom(this.#database, { queue, lane }, asked)
    return { rate: room, opensAt }
  }

  #ownRoom(lane: string): number {
    const { lanes } = this.source
    if (lanes === null) return Number.POSITIVE_INFINITY
    return lanes.limit - (lanes.running.get(lane) ?? 0) - (this.#given.get(lane) ?? 0)
  }
}
