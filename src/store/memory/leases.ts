/** The lease lane: for how long a run is someone's to work on. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { rippleOn } from '../apply/ripples.ts'
import type { HeldClaim, ReclaimedRun, ReclaimOutcome, ReclaimRequest, RenewOutcome } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Tables } from './tables.ts'

/** A lease that has ended but was not taken away can still be renewed: expiry alone takes nothing. */
export function renew(tables: Tables, claims: readonly HeldClaim[], leaseMs: number, now: EpochMs): RenewOutcome {
  const lost: string[] = []
  const cancelRequested: string[] = []
  for (const { runId, token } of claims) {
    const run = tables.runs.get(runId)
    if (run === undefined || !transitions.holds(run, token)) {
      lost.push(token)
      continue
    }
    tables.runs.put({ ...run, leaseUntil: now + leaseMs })
    if (run.cancelRequested) cancelRequested.push(token)
  }
  return { lost, cancelRequested }
}

export function reclaim(tables: Tables, request: ReclaimRequest, now: EpochMs): ReclaimOutcome {
  const { claims } = tables.runs
  const found = new Set<string>()
  const add = (ids: Iterable<string>): void => {
    for (const id of ids) if (found.size < request.limit) found.add(id)
  }
  for (const owner of request.deadOwners) add(claims.of(owner))
  add(claims.expired(now, request.limit))
  let rippled = false
  const runs = [...found].map((id): ReclaimedRun => {
    // Read again: the end of one of them may have asked another to cancel.
    const run = tables.runs.at(id)
    const transition = transitions.reclaim(run, now)
    const taken = tables.apply(transition)
    if (rippleOn(tables, taken, now)) rippled = true
    return { id, token: tokenOf(run), owner: run.owner, status: taken.status, ending: transition.ending }
  })
  return { runs, rippled }
}

/** The token of a run that is known to be claimed. */
export function tokenOf(run: RunRecord): string {
  invariant(run.token !== null, `run ${run.id} is claimed under no token`)
  return run.token
}
