/**
 * What is claimable of one queue, so that a claim costs what it takes and not what the queue holds.
 *
 * A lane is listed where it can give a run: among those ready to start one (by turn), those with a suspended one that
 * is due, those that only their rate limit holds up. One at its global limit is listed nowhere. Runs that wait for an
 * instant are kept by that instant, and join their lane when a claim finds that it has come.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { QueueRecord, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import type { Claimant, Group } from './grouped-index.ts'
import { GroupedIndex } from './grouped-index.ts'
import { Lane } from './lane.ts'
import type { Entry } from './ordered-index.ts'

interface Next {
  readonly lane: Lane
  /** Of the run. */
  readonly id: string
}

export class Line {
  #queue: QueueRecord | null = null
  readonly #lanes = new Map<string, Lane>()
  /** Ids of DELAYED and WAITING runs, by `dueAt`. */
  readonly #timers = new GroupedIndex()
  /** Names of lanes: by turn, by what is due in them first, by the end of their parking. */
  readonly #ready = new GroupedIndex()
  readonly #resumable = new GroupedIndex()
  readonly #parked = new GroupedIndex()
  #turns = 0
  #advancedTo: EpochMs = Number.NEGATIVE_INFINITY

  get queue(): QueueRecord | null {
    return this.#queue
  }

  /** The limits have changed. */
  configure(queue: QueueRecord): void {
    this.#queue = queue
    for (const lane of this.#lanes.values()) this.#unpark(lane)
  }

  lane(name: string): Lane | undefined {
    return this.#lanes.get(name)
  }

  // ── What becomes of runs ──────────────────────────────────────────────────────────────────────────────────────

  /** A row was replaced, created (no `old`) or removed (no `run`). */
  change(old: RunRecord | undefined, run: RunRecord | undefined): void {
    const left = old === undefined ? undefined : this.#leave(old)
    const joined = run === undefined ? undefined : this.#join(run, isClaimableIn(run.lane, old))
    if (old !== undefined && left !== undefined) this.#list(left, old)
    if (run !== undefined && joined !== undefined) this.#list(joined, run)
    for (const lane of [left, joined]) if (lane?.isEmpty === true) this.#lanes.delete(lane.name)
  }

  #leave(run: RunRecord): Lane | undefined {
    const lane = run.lane === null ? undefined : this.#lanes.get(run.lane)
    this.#timers.delete(run, run.id)
    lane?.enqueued.delete(run, run.id)
    lane?.due.delete(run, run.id)
    lane?.pending.delete(run.id)
    lane?.waiting.delete(run.id)
    return lane
  }

  /** `stays`: it was claimable in the same lane before. */
  #join(run: RunRecord, stays: boolean): Lane | undefined {
    if (run.lane === null || isTerminal(run.status)) return undefined
    const lane = this.#lanes.get(run.lane) ?? new Lane(run.lane)
    this.#lanes.set(lane.name, lane)
    if (run.dueAt !== null) this.#timers.set(run, run.id, run.dueAt, run.seq)
    if (run.status === 'PENDING') lane.pending.add(run.id)
    if (run.status === 'WAITING') lane.waiting.add(run.id)
    if (run.status === 'ENQUEUED') {
      if (lane.enqueued.isEmpty && !stays) this.#toTheBack(lane)
      lane.enqueued.set(run, run.id, run.rank, run.seq)
    }
    return lane
  }

  // ── Claims ────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Ids of the claimant's runs whose instant has come since the last time. Delayed ones are to be promoted by the
   * caller; suspended ones join what is due in their lane by `due`.
   */
  advance(claimant: Claimant, now: EpochMs): readonly string[] {
    if (now < this.#advancedTo) this.#rewind()
    this.#advancedTo = now
    for (const name of this.#parked.upTo(claimant, now)) {
      const lane = this.#lanes.get(name)
      if (lane !== undefined) this.#listAll(lane)
    }
    return this.#timers.upTo(claimant, now)
  }

  due(run: RunRecord): void {
    const lane = run.lane === null ? undefined : this.#lanes.get(run.lane)
    if (lane === undefined || run.dueAt === null) return
    this.#timers.delete(run, run.id)
    lane.due.set(run, run.id, run.dueAt, run.seq)
    this.#list(lane, run)
  }

  /** The suspended run that is due first, of those that the queue has room for. */
  nextResume(claimant: Claimant): Next | undefined {
    const lane = this.#laneOf(this.#resumable.first(claimant))
    return next(lane, lane?.due.first(claimant))
  }

  /** The enqueued run that comes first, of those that the queue has room for if the rate limit of the lane allows. */
  nextStart(claimant: Claimant): Next | undefined {
    const lane = this.#laneOf(this.#ready.first(claimant))
    return next(lane, lane?.enqueued.first(claimant))
  }

  /** A run of the lane was started: the other lanes come first now. */
  served(name: string): void {
    const lane = this.#lanes.get(name)
    if (lane === undefined || this.#queue?.partitioned !== true) return
    this.#toTheBack(lane)
    this.#listAll(lane)
  }

  /** `until`: null: its rate limit lets nothing start at all. */
  park(lane: Lane, until: EpochMs | null): void {
    lane.parkedUntil = until ?? Number.POSITIVE_INFINITY
    this.#listAll(lane)
  }

  /** Passes the lane over until it is put back. */
  setAside(lane: Lane, aside: boolean): void {
    lane.aside = aside
    this.#listAll(lane)
  }

  /** The next instant at which a run of the claimant's becomes due, or may start by its rate limit; null: none is known. */
  nextAt(claimant: Claimant): EpochMs | null {
    const due = this.#timers.first(claimant)?.rank ?? Number.POSITIVE_INFINITY
    const next = Math.min(due, this.#parked.first(claimant)?.rank ?? Number.POSITIVE_INFINITY)
    return next === Number.POSITIVE_INFINITY ? null : next
  }

  /** The clock was set back: what had come is to come again. */
  #rewind(): void {
    for (const lane of this.#lanes.values()) {
      for (const { group, entry } of lane.due.entries()) {
        lane.due.delete(group, entry.id)
        this.#timers.set(group, entry.id, entry.rank, entry.place)
        this.#list(lane, group)
      }
      this.#unpark(lane)
    }
  }

  #laneOf(entry: Entry | undefined): Lane | undefined {
    return entry === undefined ? undefined : this.#lanes.get(entry.id)
  }

  #unpark(lane: Lane): void {
    lane.parkedUntil = Number.NEGATIVE_INFINITY
    this.#listAll(lane)
  }

  #toTheBack(lane: Lane): void {
    this.#turns += 1
    lane.turn = this.#turns
  }

  // ── Lists of lanes ────────────────────────────────────────────────────────────────────────────────────────────

  /** Lists a lane of which the runs of one group have changed, and with them perhaps its room. */
  #list(lane: Lane, group: Group): void {
    if (lane.reopen(this.#queue)) this.#listAll(lane)
    this.#listGroup(lane, group)
  }

  #listAll(lane: Lane): void {
    lane.reopen(this.#queue)
    for (const group of lane.enqueued.groups()) this.#listGroup(lane, group)
    for (const group of lane.due.groups()) this.#listGroup(lane, group)
  }

  #listGroup(lane: Lane, group: Group): void {
    const { name, turn, parkedUntil } = lane
    const startable = lane.startsOpen && lane.enqueued.firstOf(group) !== undefined
    const isParked = parkedUntil > this.#advancedTo
    if (startable && !isParked) this.#ready.set(group, name, turn, turn)
    else this.#ready.delete(group, name)
    if (startable && isParked) this.#parked.set(group, name, parkedUntil, turn)
    else this.#parked.delete(group, name)
    const due = lane.resumesOpen ? lane.due.firstOf(group) : undefined
    if (due !== undefined) this.#resumable.set(group, name, due.rank, due.place)
    else this.#resumable.delete(group, name)
  }
}

function next(lane: Lane | undefined, entry: Entry | undefined): Next | undefined {
  return lane === undefined || entry === undefined ? undefined : { lane, id: entry.id }
}

function isClaimableIn(lane: string | null, run: RunRecord | undefined): boolean {
  return run?.status === 'ENQUEUED' && run.lane === lane
}
