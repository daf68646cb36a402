/**
 * Taking claims away: those whose lease has ended, and those of owners known to be dead.
 *
 * Several processes do so at once, for the same dead one: each passes over the rows that another has locked. A claim
 * that is being settled is locked, too; so a settlement and a reclaim of it never wait for each other, and whichever
 * has the row first decides: the other finds that it is no longer PENDING under the token.
 */

import { rippleOn } from '../apply/ripples.ts'
import { flag, text } from '../columns.ts'
import type { Command } from '../commands.ts'
import type { ReclaimedRun, ReclaimOutcome, ReclaimRequest } from '../contract.ts'
import * as transitions from '../transitions.ts'
import { prepare } from './commit/prepare.ts'
import { writeLast } from './commit/write.ts'
import type { Database } from './database.ts'
import { givenInstant } from './instant.ts'
import { pastLocks } from './past-locks.ts'
import type { Row, Transaction } from './session.ts'
import { NOW } from './session.ts'

/** In one transaction. */
const MOST_RECLAIMED = 1_000
/** What is locked for longer is taken another time. */
const LONGEST_WAIT_MS = 1_000

/** $1: dead owners, $2: how many, $3: the instant; null: the database's own. The locks end with the statement. */
export const FIND_CLAIMS = `
with dead as (
  select r.id, r.token, r.queue from perdure.runs r
  where r.status = 'PENDING' and r.owner = any($1::text[]) limit $2 for no key update skip locked),
expired as (
  select r.id, r.token, r.queue from perdure.runs r
  where r.status = 'PENDING' and r.lease_until <= (select coalesce($3::bigint, ${NOW}))
  order by r.lease_until limit $2 for no key update skip locked)
select id, token, queue from dead union select id, token, queue from expired limit $2`

interface FoundClaim {
  readonly runId: string
  readonly token: string
  /** '': the internal one. */
  readonly queue: string
}

export async function reclaim(database: Database, request: ReclaimRequest): Promise<ReclaimOutcome> {
  const { deadOwners, limit } = request
  const values = [deadOwners, Math.min(limit, MOST_RECLAIMED), givenInstant(database)]
  const found = (await database.read((session) => session.query(FIND_CLAIMS, values))).map(toFound)
  const runs: ReclaimedRun[] = []
  let rippled = false
  await pastLocks(found, LONGEST_WAIT_MS, async (some) => {
    let left = some
    while (left.length > 0) {
      const claims = left
      const taken = await database.write((transaction) => take(transaction, database, claims, deadOwners))
      runs.push(...taken.runs)
      if (taken.rippled) rippled = true
      left = taken.left
    }
  })
  return { runs, rippled }
}

function toFound(row: Row): FoundClaim {
  return { runId: text(row[0]), token: text(row[1]), queue: text(row[2]) }
}

/** The order of the commit lane (commit/lock.ts): queues of runs that are handed back, then runs. */
export const HOLD_QUEUES = `
select name from perdure.queues where name = any($1::text[]) order by name for key share`
/**
 * Those that are still to be taken away; and whether the run ends with it. Found by their ids alone, as a plan could
 * think that there are no claims to look through. $4 as $3 before.
 */
export const LOCK_CLAIMS = `
select a.id, a.token, r.cancel_requested or r.crashes >= r.max_recoveries
from unnest($1::text[], $2::text[]) as a (id, token)
cross join lateral (select * from perdure.runs where id = a.id offset 0 for no key update skip locked) r
where r.status = 'PENDING' and r.token = a.token
  and (r.owner = any($3::text[]) or r.lease_until <= coalesce($4::bigint, ${NOW}))`

interface Taken extends ReclaimOutcome {
  /** Not tried yet. */
  readonly left: readonly FoundClaim[]
}

/**
 * Runs that end come first, and alone: with them, others of these may have been asked to cancel, which have to be read
 * again.
 */
async function take(
  transaction: Transaction,
  database: Database,
  claims: readonly FoundClaim[],
  deadOwners: readonly string[],
): Promise<Taken> {
  const [, rows] = await Promise.all([
    transaction.query(HOLD_QUEUES, [[...new Set(claims.map(({ queue }) => queue))]]),
    transaction.query(LOCK_CLAIMS, [
      claims.map(({ runId }) => runId),
      claims.map(({ token }) => token),
      deadOwners,
      givenInstant(database),
    ]),
  ])
  const locked = rows.map((row) => ({ runId: text(row[0]), token: text(row[1]), ends: flag(row[2]) }))
  const ending = locked.filter(({ ends }) => ends)
  const taken = ending.length > 0 ? ending : locked
  if (taken.length === 0) return { runs: [], rippled: false, left: [] }
  const outcome = await takeLocked(transaction, taken)
  const ids = new Set(taken.map(({ runId }) => runId))
  return { ...outcome, left: ending.length > 0 ? claims.filter(({ runId }) => !ids.has(runId)) : [] }
}

interface LockedClaim {
  readonly runId: string
  readonly token: string
  readonly ends: boolean
}

async function takeLocked(transaction: Transaction, claims: readonly LockedClaim[]): Promise<ReclaimOutcome> {
  const { rows, now } = await prepare(transaction, claims.map(likeCommand))
  let rippled = false
  const runs = claims.map(({ runId, token }): ReclaimedRun => {
    // Read only now: the end of the one before may have asked this one to cancel.
    const run = rows.runs.at(runId)
    const transition = transitions.reclaim(run, now)
    const taken = rows.apply(transition)
    if (rippleOn(rows, taken, now)) rippled = true
    return { id: runId, token, owner: run.owner, status: taken.status, ending: transition.ending }
  })
  await writeLast(transaction, rows, now)
  return { runs, rippled }
}

/** What is touched when the claim is taken away is what would be if its holder had settled it so. */
function likeCommand({ runId, token, ends }: LockedClaim): Command {
  const settlement = ends
    ? ({ type: 'cancel', failure: { kind: 'cancelled', error: null } } as const)
    : ({ type: 'release' } as const)
  return { type: 'settle', runId, token, entries: [], settlement }
}
