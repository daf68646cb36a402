/** The claim lane and the lease lane: who may work on a run, and for how long. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { ClaimedRun, ClaimRequest, HeldClaim, ReclaimedRun, ReclaimRequest, RenewOutcome } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Tables } from './tables.ts'

export function claim(tables: Tables, request: ClaimRequest, now: EpochMs): readonly ClaimedRun[] {
  const claimed: ClaimedRun[] = []
  const free: string[] = []
  const answer = (run: RunRecord, token: string): void => {
    const input = tables.inputs.get(run.id)
    invariant(input !== undefined, `run ${run.id} has no input`)
    claimed.push({ run, token, input })
  }
  for (const token of request.tokens) {
    const held = tables.runs.heldUnder(token)
    if (held === undefined) free.push(token)
    else answer(held, token)
  }
  for (const token of free) {
    const run = tables.runs.nextClaimable(request.definitions, now)
    if (run === undefined) break
    const by = { token, owner: request.owner, leaseMs: request.leaseMs }
    answer(tables.apply(transitions.claim(run, by, now)), token)
  }
  return claimed
}

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

export function reclaim(tables: Tables, request: ReclaimRequest, now: EpochMs): readonly ReclaimedRun[] {
  const found = new Map<string, RunRecord>()
  const add = (runs: readonly RunRecord[]): void => {
    for (const run of runs) if (found.size < request.limit) found.set(run.id, run)
  }
  for (const owner of request.deadOwners) add(tables.runs.heldBy(owner))
  add(tables.runs.expired(now, request.limit))
  return [...found.values()].map((run) => {
    const transition = transitions.reclaim(run, now)
    const { status } = tables.apply(transition)
    return { id: run.id, token: tokenOf(run), owner: run.owner, status, ending: transition.ending }
  })
}

/** The token of a run that is known to be claimed. */
export function tokenOf(run: RunRecord): string {
  invariant(run.token !== null, `run ${run.id} is claimed under no token`)
  return run.token
}
