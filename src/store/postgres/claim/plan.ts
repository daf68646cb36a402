/** Which runs to claim, of those that a survey has found: pure, so that what is claimed has one reason. */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimedRun, ClaimRequest, ClaimSource } from '../../contract.ts'
import type { QueueRecord } from '../../records.ts'
import type { LaneRoom } from './room.ts'
import { Room } from './room.ts'
import type { Resume, Scope, Survey, SurveyedLane } from './survey.ts'

export interface Pick {
  readonly work: 'resume' | 'start'
  readonly room: Room
  readonly lane: string
  readonly definition: string
  readonly seq: number
}

/** A lane of a partitioned queue, and what the plan makes of it. */
export interface Turn {
  readonly surveyed: SurveyedLane
  readonly room: Room
  readonly lane: LaneRoom
  /** So many of its runs are to be started. */
  taken: number
}

export interface Plan {
  readonly now: EpochMs
  readonly rooms: readonly Room[]
  /** In the order of the answer: resumes, then one start of each source in turn. */
  readonly picks: readonly Pick[]
  readonly turns: readonly Turn[]
  /** Where suspended runs were found that their lanes have no room for, beside what the plan takes. */
  readonly crowded: ReadonlySet<Room>
  /** Some tokens are left. */
  readonly wanting: boolean
}

/** Every claim of the queue has to know of all others. */
export function isLimited(queue: QueueRecord | null): boolean {
  return queue !== null && (queue.partitioned || queue.globalConcurrency !== null || queue.rateLimit !== null)
}

/** The order of suspended runs that are due. */
export function byDueAt(a: Due, b: Due): number {
  return a.dueAt - b.dueAt || a.seq - b.seq
}
interface Due {
  readonly dueAt: EpochMs
  readonly seq: number
}

/** `given`: runs that the claimant holds under tokens of the request already. */
export function planFor(found: Survey, wanted: number, given: readonly ClaimedRun[]): Plan {
  const runs = given.map(({ run }) => run)
  const rooms = found.sources.map((source) => new Room(source, runs, found.now))
  const turns = rooms.flatMap((room) => turnsOf(room))
  const picks: Pick[] = []
  const crowded = new Set<Room>()
  for (const { room, resume } of dueOf(rooms)) {
    if (picks.length === wanted) break
    const { lane: name, definition, seq, active } = resume
    const lane = room.queue?.partitioned === true ? room.lane(name, active, null) : plainLane(room)
    if (room.mayResume(lane)) {
      room.resume(lane)
      picks.push({ work: 'resume', room, lane: name, definition, seq })
    } else if (room.left > 0) crowded.add(room)
  }
  let open = rooms.map((room) => startsOf(room, turns))
  while (open.length > 0 && picks.length < wanted) {
    const stillOpen: typeof open = []
    for (const starts of open) {
      if (picks.length === wanted) break
      const pick = starts.next()
      if (pick.done === true) continue
      picks.push(pick.value)
      stillOpen.push(starts)
    }
    open = stillOpen
  }
  return { now: found.now, rooms, picks, turns, crowded, wanting: picks.length < wanted }
}

export function plainLane(room: Room): LaneRoom {
  return room.lane('', room.surveyed.active, room.surveyed.ledger)
}

function turnsOf(room: Room): readonly Turn[] {
  return room.surveyed.lanes.map((surveyed) => {
    const { lane, active, ledger } = surveyed
    return { surveyed, room, lane: room.lane(lane, active, ledger), taken: 0 }
  })
}

function dueOf(rooms: readonly Room[]): readonly { readonly room: Room; readonly resume: Resume }[] {
  return rooms
    .flatMap((room) => room.surveyed.resumes.map((resume) => ({ room, resume })))
    .sort((a, b) => byDueAt(a.resume, b.resume))
}

function startsOf(room: Room, turns: readonly Turn[]): Generator<Pick, undefined> {
  return room.queue?.partitioned === true
    ? inTurn(
        room,
        turns.filter((turn) => turn.room === room),
      )
    : inOrder(room)
}

function* inOrder(room: Room): Generator<Pick, undefined> {
  for (const { definition, seq } of room.surveyed.starts) {
    const lane = plainLane(room)
    if (!room.mayStart(lane)) return
    room.start(lane)
    yield { work: 'start', room, lane: '', definition, seq }
  }
}

function* inTurn(room: Room, turns: readonly Turn[]): Generator<Pick, undefined> {
  let round = turns
  while (round.length > 0) {
    const again: Turn[] = []
    for (const turn of round) {
      if (room.left <= 0) return
      const start = turn.surveyed.starts[turn.taken]
      if (start === undefined || !room.mayStart(turn.lane)) continue
      room.start(turn.lane)
      turn.taken += 1
      again.push(turn)
      yield { work: 'start', room, lane: turn.lane.lane, definition: start.definition, seq: start.seq }
    }
    round = again
  }
}

/** True if the lane may have more enqueued runs for this claimant than the plan takes. */
export function hasMore({ surveyed, taken }: Turn): boolean {
  return taken < surveyed.starts.length || surveyed.starts.length >= surveyed.depth
}

/** True if nothing more of the lane may start now, whatever it has. */
export function isClosed({ lane }: Turn): boolean {
  return lane.global <= 0 || lane.rate <= 0
}

/** True if the lane is to be written down as it is now: it was served, is closed, or has nothing. */
export function leavesTrace(turn: Turn): boolean {
  return turn.taken > 0 || isClosed(turn) || !hasMore(turn)
}

/** Looked at by one survey; more would take its time while others wait for the queue. */
const MOST_LANES = 1_000

/** A scope that may find more than this plan; undefined: there is none. */
export function widened(plan: Plan, scope: Scope, wanted: number): Scope | undefined {
  const deeper = plan.turns.some(
    ({ surveyed, taken, lane, room }) =>
      plan.wanting && taken === surveyed.starts.length && surveyed.depth <= taken && room.mayStart(lane),
  )
  const wider = plan.rooms.some((room) => looksOn(plan, room, scope))
  const resumes = plan.wanting && [...plan.crowded].some((room) => mayHoldMore(room, scope, wanted))
  if (!deeper && !wider && !resumes) return undefined
  return {
    depth: deeper ? wanted : scope.depth,
    lanes: wider ? Math.max(scope.lanes, Math.min(scope.lanes * 4, MOST_LANES)) : scope.lanes,
    resumes: resumes ? scope.resumes * 4 : scope.resumes,
    noStart: new Map(
      plan.rooms.map((room) => [
        room.source,
        new Set([...(scope.noStart.get(room.source) ?? []), ...passable(plan, room)]),
      ]),
    ),
  }
}

/** Behind the suspended runs that were read there may be some of other lanes. */
function mayHoldMore({ queue, left, source, surveyed }: Room, { resumes }: Scope, wanted: number): boolean {
  return queue?.partitioned === true && left > 0 && surveyed.resumes.length >= Math.min(source.room, wanted) * resumes
}

/** Lanes beyond those that were looked at may have runs, or rate limits that open at instants nobody knows. */
function looksOn(plan: Plan, room: Room, { lanes }: Scope): boolean {
  const turns = plan.turns.filter((turn) => turn.room === room)
  if (turns.reduce((sum, { surveyed }) => sum + surveyed.listed, 0) < lanes) return false
  if (plan.wanting && room.left > 0) return true
  return room.queue?.rateLimit != null && turns.every((turn) => isClosed(turn) || !hasMore(turn))
}

/** Lanes that give this claim nothing. */
function passable(plan: Plan, room: Room): readonly string[] {
  return plan.turns
    .filter((turn) => turn.room === room && turn.taken === 0 && (isClosed(turn) || !hasMore(turn)))
    .map(({ lane }) => lane.lane)
}

/** Those of which a claim would change anything. */
export function busySources(look: Survey, request: ClaimRequest): readonly ClaimSource[] {
  if (look.held) return request.sources
  const { picks, turns } = planFor(look, request.tokens.length, [])
  const busy = new Set(picks.map(({ room }) => room.source))
  for (const turn of turns) {
    // Without a token, only what the next instant depends on.
    const matters = request.tokens.length > 0 || turn.room.queue?.rateLimit !== null
    if (matters && leavesTrace(turn)) busy.add(turn.room.source)
  }
  return look.sources
    .filter(
      ({ source, promotable, reopens, starts, ledger }) =>
        busy.has(source) || promotable || reopens || (starts.length > 0 && ledger !== null && ledger.lastAt > look.now),
    )
    .map(({ source }) => source)
}
