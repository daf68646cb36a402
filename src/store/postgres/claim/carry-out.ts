/** The second half of a claim: locks the runs, gives them to the claimant, and writes down what follows. */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimedRun, ClaimOutcome, ClaimRequest } from '../../contract.ts'
import * as transitions from '../../transitions.ts'
import type { Database } from '../database.ts'
import { forgetIdle, type LedgerTrace, recordStarts } from '../ledger.ts'
import type { Transaction } from '../session.ts'
import { nextInstant } from './next-instant.ts'
import { inOrder, type Taken } from './order.ts'
import { pick } from './pick.ts'
import type { Turn } from './plan.ts'
import { leavesTrace, plainLane } from './plan.ts'
import type { Prepared } from './prepare.ts'
import type { LaneRoom, Room } from './room.ts'
import { take } from './take.ts'
import { type LaneTrace, leaveTraces } from './traces.ts'

/** What others had locked is free again soon, or not to be claimed any more. */
const LOOK_AGAIN_AFTER_MS = 20

export async function carryOut(
  transaction: Transaction,
  database: Database,
  request: ClaimRequest,
  prepared: Prepared,
): Promise<ClaimOutcome> {
  const { plan, closed, rest, held } = prepared
  const turns = [...closed, ...plan.turns].filter(leavesTrace)
  const { candidates, lanes, databaseNow } = await pick(transaction, plan, turns, request.version)
  const now = databaseNow === undefined ? plan.now : transaction.instant(databaseNow)
  // What a limit counts are the instants of the claims: by that of the survey, later claims would come too early.
  for (const room of plan.rooms) room.startedAt = now
  const taken = inOrder(plan, candidates)
  const runs = give(request, taken, held, now)
  const starts = new Starts(taken)
  const ledgers = ledgersOf(plan.rooms, turns, starts, plan.now)
  const resumed = taken.filter(({ run }) => run.status === 'WAITING').map(({ run }) => run.seq)
  const stored = Promise.all([
    runs.length === 0 ? undefined : take(transaction, request.owner, runs, resumed),
    ledgers.length === 0 ? undefined : recordStarts(transaction, ledgers, now),
    leaveTraces(
      transaction,
      request,
      turns.map((turn) => traceOf(turn, starts)),
      lanes,
    ),
    ...idleLedgers(ledgers).map((trace) => forgetIdle(transaction, database, { ...trace, now: plan.now })),
  ])
  // Of lanes, what is found decides what else is to be done.
  if (lanes.length === 0) transaction.finish()
  await stored
  const answer = [...held, ...runs]
  if (prepared.unfinished || taken.length < plan.picks.length) {
    const soon = answer.length > 0 ? now : now + LOOK_AGAIN_AFTER_MS
    return { runs: answer, nextAt: soon }
  }
  return { runs: answer, nextAt: nextInstant([plan, { ...rest, turns: [...rest.turns, ...closed] }]) }
}

function give(
  { owner, tokens, version, definitions }: ClaimRequest,
  taken: readonly Taken[],
  held: readonly ClaimedRun[],
  now: EpochMs,
): readonly ClaimedRun[] {
  const known = new Map(definitions.map((definition) => [definition.name, definition]))
  const answered = new Set(held.map(({ token }) => token))
  const free = tokens.filter((token) => !answered.has(token))
  return taken.flatMap(({ run, input, room }, n): readonly ClaimedRun[] => {
    const token = free[n]
    if (token === undefined) return []
    const by = { token, owner, leaseMs: room.source.leaseMs, version }
    return [{ run: transitions.claim(run, by, now, known.get(run.definition)).run, token, input }]
  })
}

/** What was started of each lane, in the order of the claim. */
class Starts {
  readonly #counts = new Map<Room, Map<string, { count: number; last: number }>>()

  constructor(taken: readonly Taken[]) {
    for (const [n, { run, room }] of taken.entries()) {
      if (!transitions.isStart(run) || run.lane === null) continue
      const lanes = this.#counts.get(room) ?? new Map<string, { count: number; last: number }>()
      this.#counts.set(room, lanes)
      lanes.set(run.lane, { count: (lanes.get(run.lane)?.count ?? 0) + 1, last: n })
    }
  }

  in(room: Room, { lane }: LaneRoom): { readonly count: number; readonly last: number | null } {
    return this.#counts.get(room)?.get(lane) ?? { count: 0, last: null }
  }
}

function traceOf(turn: Turn, starts: Starts): LaneTrace {
  const { room, lane } = turn
  const { count, last } = starts.in(room, lane)
  return { queue: room.source.queue ?? '', lane: lane.lane, turn, served: last, opensAt: room.opensAfter(lane, count) }
}

/** Of lanes with new starts, and of those with starts in the future. */
function ledgersOf(
  rooms: readonly Room[],
  turns: readonly Turn[],
  starts: Starts,
  now: EpochMs,
): readonly LedgerTrace[] {
  const plain = rooms
    .filter(({ queue }) => queue?.partitioned === false)
    .map((room) => ({ room, lane: plainLane(room) }))
  return [...plain, ...turns].flatMap(({ room, lane }): readonly LedgerTrace[] => {
    const { queue } = room
    const started = starts.in(room, lane).count
    const { ledger } = lane
    if (queue === null || queue.rateLimit === null || (started === 0 && (ledger === null || ledger.lastAt <= now)))
      return []
    return [{ queue: queue.name, lane: lane.lane, ledger, rate: queue.rateLimit, started }]
  })
}

/** Of each queue with lanes: how many starts there were. */
function idleLedgers(ledgers: readonly LedgerTrace[]): readonly LedgerTrace[] {
  const byQueue = new Map<string, LedgerTrace>()
  for (const trace of ledgers) {
    if (trace.lane === '' || trace.started === 0) continue
    byQueue.set(trace.queue, { ...trace, started: trace.started + (byQueue.get(trace.queue)?.started ?? 0) })
  }
  return [...byQueue.values()]
}
