/** Histories of runs: append-only within an epoch; a requeue moves what has to be run again to the past. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { CheckpointCommand } from '../contract.ts'
import type { CheckpointRecord, NewCheckpoint, RunRecord } from '../records.ts'
import { flag, number, numberOrNull, text, textOrNull, word } from './columns.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'

const ENTRY_COLUMNS = `seq, type, position, verb, name, failed, value, calls, delivered, notes, recorded_at, attempts`

/** A run, the seq of its last entry (null: none), and whether it was asked to cancel, if the token is its live claim. */
export const FENCED_HISTORY = `
select seq, (select max(c.seq) from perdure_checkpoints c where c.run = r.seq), cancel_requested
from perdure_runs r where id = ? and status = 'PENDING' and token = ?`

/** Appends entries under the fence, in as few statements as can be. undefined: the claim is lost. */
export function recordFenced(
  database: Database,
  command: CheckpointCommand,
  now: EpochMs,
): { readonly cancelRequested: boolean } | undefined {
  const row = database.prepare(FENCED_HISTORY).get(command.runId, command.token)
  if (row === undefined) return undefined
  append(database, number(row[0]), numberOrNull(row[1]), command.entries, now)
  return { cancelRequested: flag(row[2]) }
}

export const LAST_ENTRY = 'select max(seq) from perdure_checkpoints where run = ?'

/** Appends entries. The caller has checked the fence of the run. */
export function record(database: Database, run: number, entries: readonly NewCheckpoint[], now: EpochMs): void {
  if (entries.length === 0) return
  append(database, run, numberOrNull(database.prepare(LAST_ENTRY).get(run)?.[0] ?? null), entries, now)
}

/** An entry that is already there is a resend: what was recorded first stands. */
export const INSERT_ENTRY = `
insert into perdure_checkpoints (run, ${ENTRY_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, seq) do nothing`

function append(
  database: Database,
  run: number,
  last: number | null,
  entries: readonly NewCheckpoint[],
  now: EpochMs,
): void {
  let next = last === null ? 0 : last + 1
  const insert = database.prepare(INSERT_ENTRY)
  for (const entry of entries) {
    invariant(entry.seq <= next, `entry ${entry.seq} would leave a gap in a history that ends before ${next}`)
    next = Math.max(next, entry.seq + 1)
    const { seq, type, position, verb, name, failed, value, calls, delivered, notes, attempts } = entry
    const flagged = failed ? 1 : 0
    const { changes } = insert.run(
      run,
      seq,
      type,
      position,
      verb,
      name,
      flagged,
      value,
      calls,
      delivered,
      notes,
      now,
      attempts,
    )
    if (Number(changes) === 0) checkResend(database, run, entry)
  }
}

const RECORDED_ENTRY = 'select position, verb, name, value from perdure_checkpoints where run = ? and seq = ?'

/** To pass over an entry that says something else than the recorded one would be to lose it in silence. */
function checkResend(database: Database, run: number, { seq, position, verb, name, value }: NewCheckpoint): void {
  const recorded = database.prepare(RECORDED_ENTRY).get(run, seq) ?? []
  const same = [position, verb, name, value].every((column, index) => column === recorded[index])
  invariant(same, `entry ${seq} was recorded before, as another one`)
}

export const FIRST_FAILURE = `
select min(seq) from perdure_checkpoints where run = ? and type = 'outcome' and failed = 1`
export const KEEP_AS_PAST = `
insert into perdure_past_checkpoints (run, epoch, ${ENTRY_COLUMNS})
select run, ?, ${ENTRY_COLUMNS} from perdure_checkpoints where run = ? and seq >= ?`
export const DELETE_FROM = 'delete from perdure_checkpoints where run = ? and seq >= ?'

/** Moves everything from the first failed outcome on to the past, under the epoch that `run` is leaving. */
export function retireFailures(database: Database, run: RunRecord): void {
  const first = database.prepare(FIRST_FAILURE).get(run.seq)?.[0] ?? null
  if (first === null) return
  database.prepare(KEEP_AS_PAST).run(run.epoch, run.seq, number(first))
  database.prepare(DELETE_FROM).run(run.seq, number(first))
}

export const HISTORY_BY_ID = `
select c.seq, type, position, verb, name, failed, value, calls, delivered, notes, recorded_at, attempts
from perdure_runs r join perdure_checkpoints c on c.run = r.seq where r.id = ? order by c.seq`

export function findHistory(database: Database, id: string): readonly CheckpointRecord[] {
  return database.prepare(HISTORY_BY_ID).all(id).map(toCheckpoint)
}

const toType = word(['outcome', 'timer', 'order'] as const)

function toCheckpoint(row: Row): CheckpointRecord {
  return {
    seq: number(row[0]),
    type: toType(row[1]),
    position: number(row[2]),
    verb: text(row[3]),
    name: text(row[4]),
    failed: flag(row[5]),
    value: textOrNull(row[6]),
    calls: number(row[7]),
    delivered: number(row[8]),
    notes: textOrNull(row[9]),
    recordedAt: number(row[10]),
    attempts: number(row[11]),
  }
}
