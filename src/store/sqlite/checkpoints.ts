/** Histories of runs: append-only within an epoch; a requeue moves what has to be run again to the past. */
import { invariant } from '../../core/invariant.ts'
import { flag, number, numberOrNull, text, textOrNull, word } from '../columns.ts'
import type { NewCheckpoint, Refusal } from '../commands.ts'
import type { CheckpointRecord, EncodedValue, RunRecord } from '../records.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'
import { applyEffect, startIdOf } from './effects.ts'
import type { Transaction } from './transaction.ts'
import { deleteWait } from './waits.ts'

const ENTRY_COLUMNS = `seq, type, position, verb, name, failed, value, calls, delivered, notes, recorded_at, attempts`

/** A run whose live claim the caller holds, as far as its history is concerned. */
export interface HeldRun {
  readonly seq: number
  readonly token: string
  /** The `seq` of its last entry; null: there is none. */
  readonly last: number | null
  readonly cancelRequested: boolean
  /** It has waits, open or resolved. */
  readonly waits: boolean
}

export const FENCED_HISTORY = `
select seq, (select max(c.seq) from perdure_checkpoints c where c.run = r.seq), cancel_requested,
  exists (select 1 from perdure_waits w where w.run = r.seq)
from perdure_runs r where id = ? and status = 'PENDING' and token = ?`

/** undefined: the claim is lost. */
export function findHeld(
  database: Database,
  { runId, token }: { readonly runId: string; readonly token: string },
): HeldRun | undefined {
  const row = database.prepare(FENCED_HISTORY).get(runId, token)
  if (row === undefined) return undefined
  const [seq, last, cancelRequested, waits] = row
  return {
    seq: number(seq),
    token,
    last: numberOrNull(last),
    cancelRequested: flag(cancelRequested),
    waits: flag(waits),
  }
}

export const INSERT_ENTRY = `
insert into perdure_checkpoints (run, ${ENTRY_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/**
 * Appends entries, with their effects. One that is already there is a resend: what was recorded first stands, and has
 * had its effects. Answers which of their starts were refused.
 */
export function record(transaction: Transaction, run: HeldRun, entries: readonly NewCheckpoint[]): readonly Refusal[] {
  const refusals: Refusal[] = []
  for (const entry of newEntries(transaction.database, run, entries)) {
    insertEntry(transaction, run.seq, entry)
    if (run.waits && entry.type === 'outcome') deleteWait(transaction.database, run.seq, entry.position)
    for (const effect of entry.effects ?? []) {
      const refusal = applyEffect(transaction, effect, startIdOf(run.token, entry))
      if (refusal !== null) refusals.push(refusal)
    }
  }
  return refusals
}

/** Those that are not recorded yet. Throws if there is one that can't be: the batch is refused then. */
export function newEntries(
  database: Database,
  run: HeldRun,
  entries: readonly NewCheckpoint[],
): readonly NewCheckpoint[] {
  const last = run.last ?? -1
  let next = last + 1
  return entries.filter((entry) => {
    const { seq } = entry
    invariant(seq <= next, `entry ${seq} would leave a gap in a history that ends before ${next}`)
    if (seq <= last) checkResend(database, run.seq, entry)
    const isNew = seq === next
    if (isNew) next += 1
    return isNew
  })
}

function insertEntry(transaction: Transaction, run: number, entry: NewCheckpoint): void {
  transaction
    .prepare(INSERT_ENTRY)
    .run(
      run,
      entry.seq,
      entry.type,
      entry.position,
      entry.verb,
      entry.name,
      entry.failed ? 1 : 0,
      entry.value,
      entry.calls,
      entry.delivered,
      entry.notes,
      transaction.now,
      entry.attempts,
    )
}

export const RECORDED_ENTRY = 'select position, verb, name, value from perdure_checkpoints where run = ? and seq = ?'

/** To pass over an entry that says something else than the recorded one would be to lose it in silence. */
function checkResend(database: Database, run: number, { seq, position, verb, name, value }: NewCheckpoint): void {
  const recorded = database.prepare(RECORDED_ENTRY).get(run, seq) ?? []
  const same = [position, verb, name, value].every((column, index) => column === recorded[index])
  invariant(same, `entry ${seq} was recorded before, as another one`)
}

/** The value of an entry that the store itself gave one; undefined: it is not recorded yet. */
export function findRecorded(database: Database, run: HeldRun, entry: NewCheckpoint): EncodedValue | undefined {
  if (run.last === null || entry.seq > run.last) return undefined
  const value = textOrNull(database.prepare(RECORDED_ENTRY).get(run.seq, entry.seq)?.[3])
  checkResend(database, run.seq, { ...entry, value })
  invariant(value !== null, `entry ${entry.seq} was recorded without the value of its action`)
  return value
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
