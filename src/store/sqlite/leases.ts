/** The lease lane: renewing claims, and taking away those that ended. */
import type { EpochMs } from '../../core/clock.ts'
import { flag, number, numberOrNull, text } from '../columns.ts'
import type { HeldClaim, ReclaimedRun, ReclaimOutcome, ReclaimRequest, RenewOutcome } from '../contract.ts'
import * as transitions from '../transitions.ts'
import { applyTransition } from './apply.ts'
import type { Database } from './database.ts'
import { runAt } from './runs.ts'
import { Transaction } from './transaction.ts'

/** A lease that has ended but was not taken away can still be renewed: expiry alone takes nothing. */
export const RENEW = `
update perdure_runs set lease_until = ? where id = ? and status = 'PENDING' and token = ?
returning cancel_requested`

export function renew(database: Database, claims: readonly HeldClaim[], leaseMs: number): RenewOutcome {
  const leaseUntil = database.clock.now() + leaseMs
  const statement = database.prepare(RENEW)
  const lost: string[] = []
  const cancelRequested: string[] = []
  for (const { runId, token } of claims) {
    const row = statement.get(leaseUntil, runId, token)
    if (row === undefined) lost.push(token)
    else if (flag(row[0])) cancelRequested.push(token)
  }
  return { lost, cancelRequested }
}

/** More would block the event loop for too long. */
const MOST_RECLAIMED = 200

/** Claims are few at any time: walking them costs less than an index that every claim would write. */
export const EXPIRED = `
select seq from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and lease_until <= ? order by lease_until limit ?`
export const HELD_BY = `
select seq from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and owner = ? order by token limit ?`

/** True if `reclaim` would take anything. */
export function isReclaimable(database: Database, { deadOwners }: ReclaimRequest): boolean {
  const expiry = nextExpiry(database)
  if (expiry !== null && expiry <= database.clock.now()) return true
  return deadOwners.some((owner) => database.prepare(HELD_BY).get(owner, 1) !== undefined)
}

/** Inside a transaction. */
export function reclaim(database: Database, { deadOwners, limit }: ReclaimRequest): ReclaimOutcome {
  const transaction = new Transaction(database)
  const most = Math.min(limit, MOST_RECLAIMED)
  const found = new Set<number>()
  const add = (sql: string, value: string | number): void => {
    for (const [seq] of database.prepare(sql).all(value, most)) found.add(number(seq))
  }
  for (const owner of deadOwners) add(HELD_BY, owner)
  add(EXPIRED, transaction.now)
  const runs = [...found].slice(0, most).map((seq): ReclaimedRun => {
    // Read only now: the end of the one before may have asked this one to cancel.
    const run = runAt(database, seq)
    const transition = transitions.reclaim(run, transaction.now)
    const { status } = applyTransition(transaction, run, transition)
    return { id: run.id, token: text(run.token), owner: run.owner, status, ending: transition.ending }
  })
  return { runs, rippled: transaction.ripples > 0 }
}

export const NEXT_EXPIRY = `
select min(lease_until) from perdure_runs indexed by perdure_runs_claims where status = 'PENDING'`

export function nextExpiry(database: Database): EpochMs | null {
  return numberOrNull(database.prepare(NEXT_EXPIRY).get()?.[0] ?? null)
}

export const CANCEL_REQUESTS = `
select id, token from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and cancel_requested = 1 and owner = ?`

export function cancelRequests(database: Database, owner: string): readonly HeldClaim[] {
  const rows = database.prepare(CANCEL_REQUESTS).all(owner)
  return rows.map((row) => ({ runId: text(row[0]), token: text(row[1]) }))
}
