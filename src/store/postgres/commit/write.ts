/**
 * Writes what the commands of a batch have made of its rows: the difference between what was read and what is there now.
 * Rows that give up a unique key come before those that take it. No statement needs the answer of another, so all of
 * them are given to the connection at once.
 */
import type { EpochMs } from '../../../core/clock.ts'
import { addStarts, type Listed } from '../lanes.ts'
import type { Transaction } from '../session.ts'
import { changedRuns } from './changed-runs.ts'
import type { WorkingSet } from './working-set.ts'
import { retireFailures, writeEntries } from './write-history.ts'
import { openLanesOf, startsInLanes } from './write-lanes.ts'
import { endRuns, insertAttempts, takeBack, updateRuns, writeEndings } from './write-runs.ts'
import { fillHashes, insertRuns } from './write-starts.ts'
import { writeReceipts, writeValues } from './write-values.ts'
import { writeSignals, writeWaits } from './write-waits.ts'

/** Nothing comes after it in the transaction. */
export async function writeLast(transaction: Transaction, rows: WorkingSet, now: EpochMs): Promise<void> {
  const starts = startsInLanes(rows)
  const written = write(transaction, rows, starts, now)
  if (starts.length === 0 && !hasNewKeys(rows)) transaction.finish()
  await written
}

async function write(
  transaction: Transaction,
  rows: WorkingSet,
  starts: readonly Listed[],
  now: EpochMs,
): Promise<void> {
  const { ended, others, requeued } = changedRuns(rows)
  const written = new Set(ended.map(({ seq }) => seq))
  const writes = await Promise.allSettled([
    writeEntries(transaction, rows, now),
    endRuns(transaction, rows, ended, now),
    updateRuns(transaction, others),
    takeBack(transaction, requeued),
    retireFailures(transaction, rows),
    writeEndings(transaction, rows, written),
    insertAttempts(transaction, rows),
    writeWaits(transaction, rows, written),
    writeSignals(transaction, rows),
    insertRuns(transaction, rows, now),
    fillHashes(transaction, rows),
    writeValues(transaction, rows),
    openLanesOf(transaction, rows),
    addStarts(transaction, starts),
    writeReceipts(transaction, rows, now),
  ])
  // After the first that fails, the others only say that the transaction is of no use any more.
  for (const write of writes) if (write.status === 'rejected') throw write.reason
}

/** Of which the answers tell whether they were taken meanwhile. */
function hasNewKeys({ kv, signalReceipts, kvReceipts }: WorkingSet): boolean {
  return kv.changes.length > 0 || signalReceipts.given.length > 0 || kvReceipts.given.length > 0
}
