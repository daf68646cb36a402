/**
 * The claim lane: which runs may be taken, and taking them.
 *
 * A look without the write lock comes first: an idle process never takes it, nor does one whose queues are at their
 * limits. A claim costs what it takes, whatever else the store holds.
 */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimedRun, ClaimOutcome, ClaimRequest } from '../../contract.ts'
import * as transitions from '../../transitions.ts'
import { applyTransition } from '../apply.ts'
import type { Database } from '../database.ts'
import { Transaction } from '../transaction.ts'
import type { Claimant } from './claimant.ts'
import { toClaimant } from './claimant.ts'
import { heldUnder } from './held.ts'
import { nextInstant } from './next-instant.ts'
import type { Offer } from './offer.ts'
import { Offers } from './offers.ts'
import { promoteDue } from './promote.ts'
import { Room } from './room.ts'
import { hasRateLimit } from './sources.ts'
import type { Survey } from './survey.ts'
import { isClaimable, survey } from './survey.ts'
import { leaveTraces, Traces } from './traces.ts'

/** The answer of a claim that would change nothing; undefined: one that would. */
export function lookForNothing(database: Database, request: ClaimRequest): ClaimOutcome | undefined {
  const found = survey(database, request, database.clock.now())
  return isClaimable(found, request) ? undefined : { runs: [], nextAt: nextInstant(database, found) }
}

/** Inside a transaction. */
export function claim(database: Database, request: ClaimRequest): ClaimOutcome {
  const transaction = new Transaction(database)
  const { now } = transaction
  const claimant = toClaimant(request, now)
  let found = survey(database, request, now)
  const allPromoted = promoteDue(database, found)
  if (found.lists.some(({ work }) => work === 'promote')) found = survey(database, request, now)
  const runs: ClaimedRun[] = found.held ? [...heldUnder(database, request)] : []
  const rooms = found.sources.map((source) => new Room(database, source, now))
  for (const { run } of runs) for (const room of rooms) if (room.source.queue === run.queue) room.count(run)
  const taken = new Set(runs.map(({ token }) => token))
  const tokens = request.tokens.filter((token) => !taken.has(token))
  const stage = { found, claimant, wanted: tokens.length, rooms: new Map(rooms.map((room) => [room, new Traces()])) }
  const offers = new Offers(database, stage)
  for (const token of tokens) {
    const offer = offers.next()
    if (offer === undefined) break
    runs.push(take(transaction, offer, token, claimant))
  }
  offers.close()
  for (const [room, traces] of stage.rooms) {
    room.close()
    if (room.laned) leaveTraces(database, room, traces, claimant)
  }
  return { runs, nextAt: allPromoted ? nextAfter(database, request, found) : now }
}

function take(transaction: Transaction, offer: Offer, token: string, claimant: Claimant): ClaimedRun {
  const { run, input, room, lane } = offer
  const by = { token, owner: claimant.owner, leaseMs: room.source.leaseMs, version: claimant.version }
  const definition = claimant.definitions.get(run.definition)
  room.take(lane, run)
  return {
    run: applyTransition(transaction, run, transitions.claim(run, by, transaction.now, definition)),
    token,
    input,
  }
}

/** After starts, the limits of rates let the next happen at another instant. */
function nextAfter(database: Database, request: ClaimRequest, found: Survey): EpochMs | null {
  const limited = found.sources.some(({ queue, laned }) => !laned && hasRateLimit(queue))
  return nextInstant(database, limited ? survey(database, request, found.now) : found)
}
