/** The lanes of partitioned queues, after a batch: some have runs to start now, others have room again. */
import type { RunRecord } from '../../records.ts'
import { isTerminal } from '../../records.ts'
import type { LaneName, Listed } from '../lanes.ts'
import { openLanes } from '../lanes.ts'
import type { Transaction } from '../session.ts'
import type { WorkingSet } from './working-set.ts'

/** Of runs that have let go of a claim, or of the turn that they held while they were suspended. */
export async function openLanesOf(transaction: Transaction, rows: WorkingSet): Promise<void> {
  const lanes: LaneName[] = []
  for (const [id, before] of rows.runs.changed) {
    const { status } = rows.runs.at(id)
    const letsGo =
      before.status === 'PENDING' ? status !== 'PENDING' : before.status === 'WAITING' && isTerminal(status)
    if (letsGo && isLaned(rows, before)) lanes.push({ queue: before.queue, lane: before.lane })
  }
  await openLanes(transaction, lanes)
}

/** Runs to start, of lanes. */
export function startsInLanes(rows: WorkingSet): readonly Listed[] {
  const listed: Listed[] = []
  const add = (run: RunRecord): void => {
    if (run.status === 'ENQUEUED' && isLaned(rows, run)) listed.push(run)
  }
  for (const run of rows.runs.created.values()) add(run)
  for (const [id, before] of rows.runs.changed) if (before.status !== 'ENQUEUED') add(rows.runs.at(id))
  return listed
}

/** On a plain queue, and the internal one, every run is in lane ''; a partitioned one may have runs in that, too. */
function isLaned(rows: WorkingSet, run: RunRecord): run is RunRecord & LaneName {
  if (run.queue === null || run.lane === null) return false
  return run.lane !== '' || rows.queue(run.queue)?.partitioned === true
}
