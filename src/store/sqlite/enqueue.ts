/** Accepts runs: all of a command, or none. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { AcceptedRun, EnqueueCommand, EnqueueOutcome, NewRun } from '../contract.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Database } from './database.ts'
import { findRun, insertRun } from './runs.ts'

/** The row gives it when it is inserted. */
const NO_SEQ_YET = 0

export function enqueue(database: Database, command: EnqueueCommand, now: EpochMs): EnqueueOutcome {
  const mismatch = command.runs.length === 1 ? undefined : findMismatch(database, command.runs)
  if (mismatch !== undefined) return mismatch
  const runs: AcceptedRun[] = []
  const seen = new Set<string>()
  for (const run of command.runs) {
    const fresh = freshRow(run, command.commandId, now)
    if (insertRun(database, fresh, run.input)) {
      runs.push({ id: run.id, created: true, status: fresh.status })
    } else {
      const row = findRun(database, run.id)
      invariant(row !== undefined, `run ${run.id} is neither new nor there`)
      if (differs(row, run)) return { type: 'mismatch', id: run.id, definition: row.definition }
      // One command may name a run twice: only the first of them creates it, in a resend too.
      const created = row.startId === command.commandId && !seen.has(run.id)
      runs.push({ id: run.id, created, status: row.status })
    }
    seen.add(run.id)
  }
  return { type: 'accepted', runs }
}

/** Looks before the first run of several is stored, as a refused command must leave nothing behind. */
function findMismatch(database: Database, runs: readonly NewRun[]): EnqueueOutcome | undefined {
  const asked = new Map<string, NewRun>()
  for (const run of runs) {
    const other = findRun(database, run.id) ?? asked.get(run.id) ?? run
    if (differs(other, run)) return { type: 'mismatch', id: run.id, definition: other.definition }
    asked.set(run.id, run)
  }
  return undefined
}

function differs(existing: Pick<RunRecord, 'definition' | 'inputHash'>, run: NewRun): boolean {
  return existing.definition !== run.definition || existing.inputHash !== run.inputHash
}

function freshRow(run: NewRun, startId: string, now: EpochMs): RunRecord {
  // SQLite would store NaN as null.
  invariant(Number.isSafeInteger(run.maxRecoveries), `run ${run.id}: maxRecoveries is no whole number`)
  invariant(run.timeoutMs === null || Number.isFinite(run.timeoutMs), `run ${run.id}: timeoutMs is no number`)
  return transitions.accept(run, NO_SEQ_YET, startId, now)
}
