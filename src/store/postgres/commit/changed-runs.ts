/** The runs that a batch has changed, sorted by how they are written. */
import type { RunRecord } from '../../records.ts'
import { isTerminal } from '../../records.ts'
import type { WorkingSet } from './working-set.ts'

export interface ChangedRuns {
  /** Deliveries that have ended their run: few columns change, and most runs go through here. */
  readonly ended: readonly RunRecord[]
  readonly others: readonly RunRecord[]
  /** They may take back a deduplication id. */
  readonly requeued: readonly RunRecord[]
}

export function changedRuns({ runs, requeued }: WorkingSet): ChangedRuns {
  const ended: RunRecord[] = []
  const others: RunRecord[] = []
  const taking: RunRecord[] = []
  for (const [id, before] of runs.changed) {
    const run = runs.at(id)
    if (requeued.has(id)) taking.push(run)
    else if (before.status === 'PENDING' && isTerminal(run.status) && sameButEnd(before, run)) ended.push(run)
    else others.push(run)
  }
  return { ended, others, requeued: taking }
}

/** A run that was asked to cancel or handed back in the same batch, or was taken from its claimant, has changed more. */
function sameButEnd(before: RunRecord, run: RunRecord): boolean {
  return (
    run.token === before.token &&
    run.operationId === before.operationId &&
    run.cancelRequested === before.cancelRequested &&
    run.startedAt === before.startedAt
  )
}
