/** The rows of perdure_runs and what hangs on them one to one: inputs and endings. */
import { invariant } from '../../core/invariant.ts'
import { failureKind, failureKindOrNull, flag, number, numberOrNull, text, textOrNull, word } from '../columns.ts'
import type { EncodedValue, Ending, RunRecord, RunStatus } from '../records.ts'
import { isTerminal, RUN_STATUSES } from '../records.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'

export const toStatus = word<RunStatus>(RUN_STATUSES)
const toKind = word(['workflow', 'job', 'stepRunner'] as const)

/** In the order that `toRun` reads. */
export const RUN_COLUMNS = `seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status,
  input_hash, due_at, token, owner, lease_until, epoch, version, parent_id, deliveries, attempt, crashes,
  max_recoveries, timeout_ms, deadline_at, cancel_requested, created_at, started_at, ended_at, failure_kind, start_id,
  operation_id`
/** So many are they: what a statement selects besides comes after. */
export const RUN_WIDTH = 32

export function toRun(row: Row): RunRecord {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    definition: text(row[2]),
    kind: row[3] === '' ? null : toKind(row[3]),
    queue: textOrNull(row[4]),
    priority: number(row[5]),
    partitionKey: textOrNull(row[6]),
    lane: textOrNull(row[7]),
    rank: number(row[8]),
    dedupId: textOrNull(row[9]),
    status: toStatus(row[10]),
    inputHash: text(row[11]),
    dueAt: numberOrNull(row[12]),
    token: textOrNull(row[13]),
    owner: textOrNull(row[14]),
    leaseUntil: numberOrNull(row[15]),
    epoch: number(row[16]),
    version: textOrNull(row[17]),
    parentId: textOrNull(row[18]),
    deliveries: number(row[19]),
    attempt: number(row[20]),
    crashes: number(row[21]),
    maxRecoveries: number(row[22]),
    timeoutMs: numberOrNull(row[23]),
    deadlineAt: numberOrNull(row[24]),
    cancelRequested: flag(row[25]),
    createdAt: number(row[26]),
    startedAt: numberOrNull(row[27]),
    endedAt: numberOrNull(row[28]),
    failureKind: failureKindOrNull(row[29]),
    startId: text(row[30]),
    operationId: textOrNull(row[31]),
  }
}

export const RUN_BY_ID = `select ${RUN_COLUMNS} from perdure_runs where id = ?`

export function findRun(database: Database, id: string): RunRecord | undefined {
  const row = database.prepare(RUN_BY_ID).get(id)
  return row === undefined ? undefined : toRun(row)
}

export const RUN_BY_SEQ = `select ${RUN_COLUMNS} from perdure_runs where seq = ?`

/** A run that an index, or another row of this transaction, has named. */
export function runAt(database: Database, seq: number): RunRecord {
  const row = database.prepare(RUN_BY_SEQ).get(seq)
  invariant(row !== undefined, `the run at place ${seq} is not there`)
  return toRun(row)
}

/** Where the next run comes, whatever has been removed since: places are never given twice. */
export const NEXT_PLACE = `
select max(coalesce((select max(seq) from perdure_runs), 0),
  coalesce((select cast(value as integer) from perdure_meta where name = 'last_place'), 0)) + 1`
/** To be noted before runs are removed. */
export const NOTE_LAST_PLACE = `
insert into perdure_meta (name, value) select 'last_place', max(seq) from perdure_runs where true
on conflict (name) do update set value = excluded.value where cast(value as integer) < cast(excluded.value as integer)`

export function firstFreePlace(database: Database): number {
  return number(database.prepare(NEXT_PLACE).get()?.[0])
}

/** Whatever is taken already, the id or a deduplication id: nothing is stored. */
export const INSERT_CLAIMED = `
insert into perdure_runs (seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status,
  input_hash, due_at, parent_id, max_recoveries, timeout_ms, created_at, start_id, input, token, owner, lease_until,
  version, deliveries, attempt, deadline_at, started_at, epoch, crashes, cancel_requested)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0)
on conflict do nothing`
/** The same of a run that is not claimed at once. Each value that is given costs as much as a small index. */
export const INSERT_UNCLAIMED = `
insert into perdure_runs (seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status,
  input_hash, due_at, parent_id, max_recoveries, timeout_ms, created_at, start_id, input,
  deliveries, attempt, epoch, crashes, cancel_requested)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)
on conflict do nothing`
export const INSERT_INPUT = 'insert into perdure_inputs (run, input) values (?, ?)'

/** In characters; larger inputs and outputs are kept apart, so that the rows stay narrow. */
const LARGEST_INLINE = 512

const isLarge = (value: EncodedValue): boolean => value.length > LARGEST_INLINE

/** A run as it was just accepted. False: the id, or the deduplication id, is taken. */
export function insertRun(database: Database, run: RunRecord, input: EncodedValue): boolean {
  const inline = isLarge(input) ? null : input
  const written =
    run.status === 'PENDING' ? insertClaimed(database, run, inline) : insertUnclaimed(database, run, inline)
  if (!written) return false
  if (inline === null) database.prepare(INSERT_INPUT).run(run.seq, input)
  return true
}

function insertUnclaimed(database: Database, run: RunRecord, input: EncodedValue | null): boolean {
  const { changes } = database
    .prepare(INSERT_UNCLAIMED)
    .run(
      run.seq,
      run.id,
      run.definition,
      run.kind ?? '',
      run.queue,
      run.priority,
      run.partitionKey,
      run.lane,
      run.rank,
      run.dedupId,
      run.status,
      run.inputHash,
      run.dueAt,
      run.parentId,
      run.maxRecoveries,
      run.timeoutMs,
      run.createdAt,
      run.startId,
      input,
    )
  return Number(changes) > 0
}

function insertClaimed(database: Database, run: RunRecord, input: EncodedValue | null): boolean {
  const { changes } = database
    .prepare(INSERT_CLAIMED)
    .run(
      run.seq,
      run.id,
      run.definition,
      run.kind ?? '',
      run.queue,
      run.priority,
      run.partitionKey,
      run.lane,
      run.rank,
      run.dedupId,
      run.status,
      run.inputHash,
      run.dueAt,
      run.parentId,
      run.maxRecoveries,
      run.timeoutMs,
      run.createdAt,
      run.startId,
      input,
      run.token,
      run.owner,
      run.leaseUntil,
      run.version,
      run.deliveries,
      run.attempt,
      run.deadlineAt,
      run.startedAt,
    )
  return Number(changes) > 0
}

/** What any transition may change. */
export const UPDATE_RUN = `
update perdure_runs set lane = ?, rank = ?, status = ?, due_at = ?, token = ?, owner = ?, lease_until = ?, epoch = ?,
  version = ?, deliveries = ?, attempt = ?, crashes = ?, deadline_at = ?, cancel_requested = ?, started_at = ?,
  ended_at = ?, failure_kind = ?, operation_id = ?
where seq = ?`

export function updateRun(database: Database, run: RunRecord): void {
  const { changes } = database
    .prepare(UPDATE_RUN)
    .run(
      run.lane,
      run.rank,
      run.status,
      run.dueAt,
      run.token,
      run.owner,
      run.leaseUntil,
      run.epoch,
      run.version,
      run.deliveries,
      run.attempt,
      run.crashes,
      run.deadlineAt,
      run.cancelRequested ? 1 : 0,
      run.startedAt,
      run.endedAt,
      run.failureKind,
      run.operationId,
      run.seq,
    )
  invariant(Number(changes) === 1, `run ${run.id} vanished inside a transaction`)
}

/** What a claim changes, and no more: it is made once for each delivery. */
export const UPDATE_CLAIMED = `
update perdure_runs set kind = ?, status = 'PENDING', due_at = null, token = ?, owner = ?, lease_until = ?,
  version = ?, deliveries = ?, attempt = ?, max_recoveries = ?, timeout_ms = ?, deadline_at = ?, started_at = ?
where seq = ?`

export function updateClaimed(database: Database, run: RunRecord): void {
  database
    .prepare(UPDATE_CLAIMED)
    .run(
      run.kind ?? '',
      run.token,
      run.owner,
      run.leaseUntil,
      run.version,
      run.deliveries,
      run.attempt,
      run.maxRecoveries,
      run.timeoutMs,
      run.deadlineAt,
      run.startedAt,
      run.seq,
    )
}

/** What the end of a delivery changes if it ends the run: store/transitions.ts, `settle`. */
export const UPDATE_SETTLED = `
update perdure_runs set status = ?, lease_until = null, ended_at = ?, failure_kind = ?, output = ? where seq = ?`

export function updateSettled(
  database: Database,
  run: Pick<RunRecord, 'seq' | 'status' | 'endedAt' | 'failureKind'>,
  ending: Ending,
): void {
  const inline = ending.status === 'SUCCESS' && !isLarge(ending.output) ? ending.output : null
  database.prepare(UPDATE_SETTLED).run(run.status, run.endedAt, run.failureKind, inline, run.seq)
  if (inline === null) insertEnding(database, run.seq, ending)
}

export const INSERT_ENDING = 'insert into perdure_endings (run, output, error) values (?, ?, ?)'

export function insertEnding(database: Database, seq: number, ending: Ending): void {
  const output = ending.status === 'SUCCESS' ? ending.output : null
  const error = ending.status === 'SUCCESS' ? null : ending.failure.error
  database.prepare(INSERT_ENDING).run(seq, output, error)
}

export const DELETE_ENDING = 'delete from perdure_endings where run = ?'

export function deleteEnding(database: Database, seq: number): void {
  database.prepare(DELETE_ENDING).run(seq)
}

export const INPUT_BY_ID = `
select coalesce(r.input, (select i.input from perdure_inputs i where i.run = r.seq)) from perdure_runs r where r.id = ?`

export function findInput(database: Database, id: string): EncodedValue | undefined {
  const row = database.prepare(INPUT_BY_ID).get(id)
  return row === undefined ? undefined : text(row[0])
}

export const ENDING_BY_ID = `
select r.status, r.failure_kind, coalesce(r.output, e.output), e.error
from perdure_runs r left join perdure_endings e on e.run = r.seq where r.id = ?`

/** undefined: the run has not ended. */
export function findEnding(database: Database, id: string): Ending | 'missing' | undefined {
  const row = database.prepare(ENDING_BY_ID).get(id)
  if (row === undefined) return 'missing'
  const status = toStatus(row[0])
  if (!isTerminal(status)) return undefined
  if (status === 'SUCCESS') return { status, output: text(row[2]) }
  return { status, failure: { kind: failureKind(row[1]), error: textOrNull(row[3]) } }
}
