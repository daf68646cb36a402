/** One source of a claim: what it can still give, by the room of the claimant and the limits of its queue. */
import type { EpochMs } from '../../core/clock.ts'
import type { ClaimSource } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Claimant } from './grouped-index.ts'
import type { Lane } from './lane.ts'
import type { Line } from './line.ts'
import type { Tables } from './tables.ts'

export class Supply {
  readonly #tables: Tables
  readonly #claimant: Claimant
  readonly #source: ClaimSource
  readonly #now: EpochMs
  readonly #line: Line
  #room: number
  /** How many runs of each lane this claim has given. */
  readonly #given = new Map<string | null, number>()
  readonly #aside: Lane[] = []

  constructor(tables: Tables, claimant: Claimant, source: ClaimSource, now: EpochMs) {
    this.#tables = tables
    this.#claimant = claimant
    this.#source = source
    this.#now = now
    this.#line = tables.runs.line(source.queue)
    this.#room = source.room
  }

  get leaseMs(): number {
    return this.#source.leaseMs
  }

  /** A run of this source that was given already, now or when the request came for the first time. */
  count({ queue, lane }: RunRecord): void {
    if (queue !== this.#source.queue) return
    this.#room -= 1
    this.#given.set(lane, (this.#given.get(lane) ?? 0) + 1)
  }

  /** Delayed runs that are due become claimable, and suspended ones too. */
  advance(): void {
    if (this.#isPaused) return
    if (this.#source.queue !== null) this.#tables.ledger.redate(this.#source.queue, this.#now)
    for (const run of this.#tables.runs.all(this.#line.advance(this.#claimant, this.#now)).toSorted(byDueAt)) {
      if (run.status === 'DELAYED') this.#tables.apply(transitions.promote(run))
      else this.#line.due(run)
    }
  }

  /** The suspended run that comes first, of those that are due and that there is room for. */
  nextResume(): RunRecord | undefined {
    while (this.#isOpen()) {
      const next = this.#line.nextResume(this.#claimant)
      if (next === undefined) return undefined
      if (this.#hasLaneRoom(next.lane)) return this.#tables.runs.at(next.id)
      this.#putAside(next.lane)
    }
    return undefined
  }

  /** The enqueued run that comes first, of those that there is room for. */
  nextStart(): RunRecord | undefined {
    while (this.#isOpen()) {
      const next = this.#line.nextStart(this.#claimant)
      if (next === undefined) return undefined
      if (!this.#hasLaneRoom(next.lane)) this.#putAside(next.lane)
      else if (!this.#parkIfClosed(next.lane)) return this.#tables.runs.at(next.id)
    }
    return undefined
  }

  /** The run has been claimed, as the start of an attempt: the ledger counts it, and other lanes come first now. */
  started(run: RunRecord): void {
    const rate = this.#line.queue?.rateLimit ?? null
    if (run.queue !== null && run.lane !== null && rate !== null) {
      this.#tables.ledger.record(run.queue, run.lane, rate, this.#now)
    }
    if (run.lane !== null) this.#line.served(run.lane)
  }

  /** Puts everything back for other claimants. */
  close(): void {
    for (const lane of this.#aside) this.#line.setAside(lane, false)
  }

  /** After `close`. */
  nextAt(): EpochMs | null {
    if (this.#isPaused) return null
    let next = this.#line.nextStart(this.#claimant)
    while (next !== undefined && this.#parkIfClosed(next.lane)) next = this.#line.nextStart(this.#claimant)
    return this.#line.nextAt(this.#claimant)
  }

  get #isPaused(): boolean {
    return this.#line.queue?.paused === true
  }

  #isOpen(): boolean {
    return !this.#isPaused && this.#room > 0
  }

  #hasLaneRoom({ name }: Lane): boolean {
    const { lanes } = this.#source
    return lanes === null || (lanes.running.get(name) ?? 0) + (this.#given.get(name) ?? 0) < lanes.limit
  }

  #putAside(lane: Lane): void {
    this.#aside.push(lane)
    this.#line.setAside(lane, true)
  }

  /** True if the rate limit of the lane lets nothing start now. */
  #parkIfClosed(lane: Lane): boolean {
    const { queue } = this.#line
    if (queue === null || queue.rateLimit === null) return false
    const { room, opensAt } = this.#tables.ledger.room(queue.name, lane.name, queue.rateLimit, this.#now)
    if (room === 0) this.#line.park(lane, opensAt)
    return room === 0
  }
}

/** The order of suspended runs that are due, and that in which lanes get something to claim. */
export function byDueAt(a: RunRecord, b: RunRecord): number {
  return a.dueAt === b.dueAt ? a.seq - b.seq : (a.dueAt ?? 0) - (b.dueAt ?? 0)
}
