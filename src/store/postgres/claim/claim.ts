/**
 * The claim lane: which runs may be taken, and taking them.
 *
 * A look comes first: one statement without a transaction. An idle process does nothing else, nor does one whose queues
 * are at their limits. It tells which sources have something, and the transaction has to do with those alone:
 *
 * 1. The rows of queues with limits or lanes: FOR NO KEY UPDATE, by name, in a statement of its own. (Where delayed runs
 *    are due, the rows of the other queues FOR SHARE.) Delayed runs that are due are promoted.
 * 2. The survey again, with a snapshot younger than those locks: counts, ledgers, lanes and candidates. Without such
 *    queues the look itself will do.
 * 3. The runs to claim: FOR NO KEY UPDATE SKIP LOCKED, with their inputs (pick.ts). Of a queue without limits its row
 *    is kept FOR SHARE by the same statement. Then the rows of lanes: FOR NO KEY UPDATE, by key.
 * 4. The claimed runs, the ledger of starts, the lanes are stored; rows of lanes that stand for nothing are deleted.
 *
 * So queues come before runs, runs before lanes, and where the order could be another, nothing is waited for.
 *
 * Limits are exact, since whatever claims from a queue with limits holds its row from before it counts until it has
 * committed; whatever else changes the counts (ends, hand-backs, suspensions) only makes room. A queue whose limits
 * change is locked by who changes it against claims of either kind.
 *
 * No wake-up is lost:
 * - A start that commits after the look wakes whoever it concerns, and is found by the look that follows. Starts keep FOR
 *   KEY SHARE on their queue, which none of the locks above waits for; one in a transaction of a caller keeps nothing
 *   before that commits (migrations/start.ts).
 * - An end that frees a slot of a lane, and a claim that closes it as full: the claim locks the runs that it counts FOR
 *   SHARE, without waiting, and closes the lane only if they fill it. An end under way has locked its run, so the lane
 *   stays open; a later one waits for the claim, and then finds the lane closed, and opens it. (The locks of the lane's
 *   rows alone won't do: tried, a row that was added while the end was under way was closed behind its back.)
 * - A start and a claim that deletes the row of its lane as empty: the start keeps FOR KEY SHARE until it commits, and
 *   the claim deletes only what it could lock FOR UPDATE without waiting, and what is empty in a statement after that.
 * - What somebody else has locked is passed over, and looked for again soon: `nextAt` says so.
 * - A transaction that fails leaves all as it was, for the next look.
 */
import type { ClaimOutcome, ClaimRequest } from '../../contract.ts'
import { DatabaseClock } from '../clock.ts'
import type { Database } from '../database.ts'
import { carryOut } from './carry-out.ts'
import { nextInstant } from './next-instant.ts'
import { busySources, planFor } from './plan.ts'
import { narrow, prepare } from './prepare.ts'
import type { Survey } from './survey.ts'
import { survey } from './survey.ts'

/** Another claim of a queue is over in milliseconds, and a queue that is changed has to be waited for. */
const PATIENCE = { lockTimeoutMs: 2_000 }

export async function claim(database: Database, request: ClaimRequest): Promise<ClaimOutcome> {
  if (request.sources.length === 0) return { runs: [], nextAt: null }
  const now = database.clock instanceof DatabaseClock ? null : database.clock.now()
  const look = await database.read((session) => survey(session, request, narrow(request), now))
  database.instant(look.now)
  if (busySources(look, request).length === 0) {
    return { runs: [], nextAt: nextInstant([planFor(look, 0, [])]) }
  }
  let first: Survey | undefined = look
  return await database.write(async (transaction) => {
    // What was seen before an interference is of no use after it.
    const seen = first ?? (await survey(transaction, request, narrow(request), now))
    first = undefined
    return await carryOut(transaction, database, request, await prepare(transaction, request, seen, now))
  }, PATIENCE)
}
