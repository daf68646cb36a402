/** Accepts runs: all of a command, or none. */
import { invariant } from '../../core/invariant.ts'
import { startCaveat } from '../caveat.ts'
import type { AcceptedRun, EnqueueCommand, EnqueueOutcome, NewRun, Refusal } from '../commands.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Database } from './database.ts'
import { putValue } from './kv.ts'
import { addStart, isLaned } from './lanes.ts'
import { findRun, insertRun, RUN_COLUMNS, toRun } from './runs.ts'
import type { Transaction } from './transaction.ts'

const SAVE = 'savepoint enqueue'
const UNDO = 'rollback to enqueue'
const RELEASE = 'release enqueue'

export function enqueue(transaction: Transaction, command: EnqueueCommand): EnqueueOutcome {
  const { runs, commandId } = command
  const [only] = runs
  if (only !== undefined && runs.length === 1) {
    const start = startOne(transaction, only, commandId)
    return start.type === 'accepted' ? { type: 'accepted', runs: [start.run] } : start
  }
  // Runs are stored one by one, and a refused command leaves none behind.
  transaction.prepare(SAVE).run()
  const outcome = startAll(transaction, command)
  if (outcome.type !== 'accepted') transaction.prepare(UNDO).run()
  transaction.prepare(RELEASE).run()
  return outcome
}

type Start = { readonly type: 'accepted'; readonly run: AcceptedRun } | Refusal

/** Accepts one run by itself; `startId` names the command that it is of. */
export function startOne(transaction: Transaction, run: NewRun, startId: string): Start {
  const found = acceptOrFind(transaction, run, startId)
  if (found.type !== 'row') return found
  const created = found.row.id === run.id && found.row.startId === startId
  return { type: 'accepted', run: answer(transaction, found.row, created) }
}

function startAll(transaction: Transaction, { runs, commandId }: EnqueueCommand): EnqueueOutcome {
  const accepted: AcceptedRun[] = []
  /** Answers by the id that was asked for: the first run of an id stands for the later ones. */
  const asked = new Map<string, { readonly run: NewRun; readonly row: RunRecord }>()
  /** Runs of this very command, by the deduplication id that they hold, or held when it came for the first time. */
  const own = new Map<string, RunRecord>()
  for (const run of runs) {
    const same = asked.get(run.id)
    if (same !== undefined) {
      const other = same.row.id === run.id ? same.row : same.run
      if (differs(other, run)) return mismatch(run, other)
      accepted.push(answer(transaction, same.row, false))
      continue
    }
    const slot = run.queue === null || run.dedup === null ? null : JSON.stringify([run.queue, run.dedup.id])
    const holder = slot === null ? undefined : own.get(slot)
    const found = acceptOrFind(transaction, run, commandId, holder)
    if (found.type !== 'row') return found
    const { row } = found
    const created = row.id === run.id && row.startId === commandId
    if (created && slot !== null) own.set(slot, row)
    asked.set(run.id, { run, row })
    accepted.push(answer(transaction, row, created))
  }
  return { type: 'accepted', runs: accepted }
}

/**
 * The row of the run, stored now unless it was there already, or that of the run which holds its deduplication id.
 * `holder`: the run of the same command that does.
 */
function acceptOrFind(
  transaction: Transaction,
  run: NewRun,
  startId: string,
  holder?: RunRecord,
): { readonly type: 'row'; readonly row: RunRecord } | Refusal {
  const { database } = transaction
  if (holder === undefined) {
    const fresh = freshRow(transaction, run, startId)
    if (insertRun(database, fresh, run.input)) {
      for (const put of run.kv) putValue(database, put)
      if (fresh.status === 'ENQUEUED' && isLaned(transaction, fresh)) addStart(database, fresh)
      return { type: 'row', row: fresh }
    }
  }
  const existing = findRun(database, run.id)
  if (existing !== undefined) return differs(existing, run) ? mismatch(run, existing) : { type: 'row', row: existing }
  const { queue, dedup } = run
  invariant(queue !== null && dedup !== null, `run ${run.id} is neither new nor there`)
  const other = holder ?? findHolder(database, queue, dedup.id)
  invariant(other !== undefined, `run ${run.id} is neither new nor there, nor is its deduplication id held`)
  if (dedup.policy === 'returnExisting') return { type: 'row', row: other }
  return { type: 'deduplicated', id: run.id, queue, dedupId: dedup.id, holder: other.id }
}

export const DEDUP_HOLDER = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_dedup
where dedup_id is not null and ended_at is null and queue = ? and dedup_id = ?`

/** The run that holds a deduplication id, as it has not ended. */
export function findHolder(database: Database, queue: string, dedupId: string): RunRecord | undefined {
  const row = database.prepare(DEDUP_HOLDER).get(queue, dedupId)
  return row === undefined ? undefined : toRun(row)
}

function differs(existing: Pick<RunRecord, 'definition' | 'inputHash'>, run: NewRun): boolean {
  return existing.definition !== run.definition || existing.inputHash !== run.inputHash
}

function mismatch({ id }: NewRun, { definition }: Pick<RunRecord, 'definition'>): Refusal {
  return { type: 'mismatch', id, definition }
}

function freshRow(transaction: Transaction, run: NewRun, startId: string): RunRecord {
  const { id, maxRecoveries, timeoutMs, priority, due } = run
  // SQLite would store NaN as null, and a fraction as one.
  invariant(Number.isSafeInteger(maxRecoveries), `run ${id}: maxRecoveries is no whole number`)
  invariant(timeoutMs === null || Number.isFinite(timeoutMs), `run ${id}: timeoutMs is no number`)
  invariant(Number.isSafeInteger(priority), `run ${id}: priority is no whole number`)
  invariant(due === null || Number.isFinite(due.type === 'at' ? due.instant : due.ms), `run ${id}: due is no number`)
  const queue = transaction.queue(run.queue)
  return transitions.accept(run, { seq: transaction.nextPlace(), startId, queue }, transaction.now)
}

function answer(transaction: Transaction, row: RunRecord, created: boolean): AcceptedRun {
  return { id: row.id, created, status: row.status, caveat: startCaveat(row, transaction.queue(row.queue)) }
}
