/** The rows of perdure_runs and what hangs on them one to one: inputs and endings. */
import { invariant } from '../../core/invariant.ts'
import type { ListRequest } from '../contract.ts'
import type { EncodedValue, Ending, RunRecord, RunStatus } from '../records.ts'
import { isTerminal, RUN_STATUSES } from '../records.ts'
import type { Transition } from '../transitions.ts'
import { appendAttempts } from './attempts.ts'
import { failureKind, failureKindOrNull, flag, number, numberOrNull, text, textOrNull, word } from './columns.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'

export const toStatus = word<RunStatus>(RUN_STATUSES)
const toKind = word(['workflow', 'job', 'stepRunner'] as const)

/** In the order that `toRun` reads. */
export const RUN_COLUMNS = `seq, id, definition, kind, queue, status, input_hash, due_at, token, owner, lease_until,
  epoch, deliveries, attempt, crashes, max_recoveries, timeout_ms, deadline_at, cancel_requested, created_at,
  started_at, ended_at, failure_kind, start_id, operation_id`

export function toRun(row: Row): RunRecord {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    definition: text(row[2]),
    kind: toKind(row[3]),
    queue: textOrNull(row[4]),
    status: toStatus(row[5]),
    inputHash: text(row[6]),
    dueAt: numberOrNull(row[7]),
    token: textOrNull(row[8]),
    owner: textOrNull(row[9]),
    leaseUntil: numberOrNull(row[10]),
    epoch: number(row[11]),
    deliveries: number(row[12]),
    attempt: number(row[13]),
    crashes: number(row[14]),
    maxRecoveries: number(row[15]),
    timeoutMs: numberOrNull(row[16]),
    deadlineAt: numberOrNull(row[17]),
    cancelRequested: flag(row[18]),
    createdAt: number(row[19]),
    startedAt: numberOrNull(row[20]),
    endedAt: numberOrNull(row[21]),
    failureKind: failureKindOrNull(row[22]),
    startId: text(row[23]),
    operationId: textOrNull(row[24]),
  }
}

export const RUN_BY_ID = `select ${RUN_COLUMNS} from perdure_runs where id = ?`

export function findRun(database: Database, id: string): RunRecord | undefined {
  const row = database.prepare(RUN_BY_ID).get(id)
  return row === undefined ? undefined : toRun(row)
}

export const INSERT_RUN = `
insert into perdure_runs (id, definition, kind, queue, status, input_hash, due_at, token, owner, lease_until,
  epoch, deliveries, attempt, crashes, max_recoveries, timeout_ms, deadline_at, cancel_requested, created_at,
  started_at, ended_at, failure_kind, start_id, operation_id)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do nothing`
export const INSERT_INPUT = 'insert into perdure_inputs (run, input) values (?, ?)'

/** Gives the run its place (`seq` of `run` is ignored). False: the id is taken, and nothing is stored. */
export function insertRun(database: Database, run: RunRecord, input: EncodedValue): boolean {
  const { changes, lastInsertRowid } = database
    .prepare(INSERT_RUN)
    .run(
      run.id,
      run.definition,
      run.kind,
      run.queue,
      run.status,
      run.inputHash,
      run.dueAt,
      run.token,
      run.owner,
      run.leaseUntil,
      run.epoch,
      run.deliveries,
      run.attempt,
      run.crashes,
      run.maxRecoveries,
      run.timeoutMs,
      run.deadlineAt,
      run.cancelRequested ? 1 : 0,
      run.createdAt,
      run.startedAt,
      run.endedAt,
      run.failureKind,
      run.startId,
      run.operationId,
    )
  if (Number(changes) === 0) return false
  database.prepare(INSERT_INPUT).run(Number(lastInsertRowid), input)
  return true
}

export const UPDATE_RUN = `
update perdure_runs set status = ?, due_at = ?, token = ?, owner = ?, lease_until = ?, epoch = ?, deliveries = ?,
  attempt = ?, crashes = ?, deadline_at = ?, cancel_requested = ?, started_at = ?, ended_at = ?, failure_kind = ?,
  operation_id = ?
where seq = ?`
export const INSERT_ENDING = 'insert into perdure_endings (run, output, error) values (?, ?, ?)'

/** Stores what a transition made of a run. The caller has read the run in this transaction. */
export function applyTransition(database: Database, { run, ending, attempts }: Transition): RunRecord {
  const { changes } = database
    .prepare(UPDATE_RUN)
    .run(
      run.status,
      run.dueAt,
      run.token,
      run.owner,
      run.leaseUntil,
      run.epoch,
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
  if (ending !== null) {
    const output = ending.status === 'SUCCESS' ? ending.output : null
    const error = ending.status === 'SUCCESS' ? null : ending.failure.error
    database.prepare(INSERT_ENDING).run(run.seq, output, error)
  }
  if (attempts.length > 0) appendAttempts(database, run.seq, attempts)
  return run
}

export const DELETE_ENDING = 'delete from perdure_endings where run = ?'

export function deleteEnding(database: Database, seq: number): void {
  database.prepare(DELETE_ENDING).run(seq)
}

export const INPUT_BY_ID = `
select i.input from perdure_runs r join perdure_inputs i on i.run = r.seq where r.id = ?`

export function findInput(database: Database, id: string): EncodedValue | undefined {
  const row = database.prepare(INPUT_BY_ID).get(id)
  return row === undefined ? undefined : text(row[0])
}

export const ENDING_BY_ID = `
select r.status, r.failure_kind, e.output, e.error
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

/** Where to look for the newest runs of a sort, each in the order of an index. */
export const LIST_ALL = `
select ${RUN_COLUMNS} from perdure_runs where seq < ? order by seq desc limit ?`
export const LIST_OF_DEFINITION = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_definitions
where seq < ? and definition = ? order by seq desc limit ?`
/** Claims are few at any time: sorting them costs less than an index that every claim would write. */
export const LIST_PENDING = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and seq < ? and coalesce(? = definition, 1) order by seq desc limit ?`
export const LIST_RESTING = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_resting
where seq < ? and coalesce(? = definition, 1) and status = ? and status not in ('SUCCESS', 'PENDING')
order by seq desc limit ?`
export const LIST_SUCCESS = `
select ${RUN_COLUMNS} from perdure_runs where status = 'SUCCESS' and seq < ? order by seq desc limit ?`
export const LIST_SUCCESS_OF_DEFINITION = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_definitions
where status = 'SUCCESS' and seq < ? and definition = ? order by seq desc limit ?`

export function listRuns(database: Database, request: ListRequest): readonly RunRecord[] {
  const { status, definition = null, limit, beforeSeq = Number.MAX_SAFE_INTEGER } = request
  if (status === undefined) {
    const rows =
      definition === null
        ? database.prepare(LIST_ALL).all(beforeSeq, limit)
        : database.prepare(LIST_OF_DEFINITION).all(beforeSeq, definition, limit)
    return rows.map(toRun)
  }
  const rows = [...new Set(status)].flatMap((it) => {
    if (it === 'PENDING') return database.prepare(LIST_PENDING).all(beforeSeq, definition, limit)
    if (it !== 'SUCCESS') return database.prepare(LIST_RESTING).all(beforeSeq, definition, it, limit)
    if (definition === null) return database.prepare(LIST_SUCCESS).all(beforeSeq, limit)
    return database.prepare(LIST_SUCCESS_OF_DEFINITION).all(beforeSeq, definition, limit)
  })
  return rows
    .map(toRun)
    .sort((a, b) => b.seq - a.seq)
    .slice(0, limit)
}
