/** The rows of `runs`: how they are read, and how many of them are written by one statement. */
import { failureKindOrNull, flag, number, numberOrNull, text, textOrNull, word } from '../columns.ts'
import type { RunRecord, RunStatus } from '../records.ts'
import { RUN_STATUSES } from '../records.ts'
import type { Row } from './session.ts'

export const toStatus = word<RunStatus>(RUN_STATUSES)
const toKind = word(['workflow', 'job', 'stepRunner'] as const)

/** In the order that `toRun` reads. */
export const RUN_COLUMNS = `r.seq, r.id, r.definition, r.kind, r.queue, r.priority, r.partition_key, r.lane, r.rank,
  r.dedup_id, r.status, r.input_hash, r.due_at, r.token, r.owner, r.lease_until, r.epoch, r.version, r.parent_id,
  r.deliveries, r.attempt, r.crashes, r.max_recoveries, r.timeout_ms, r.deadline_at, r.cancel_requested, r.created_at,
  r.started_at, r.ended_at, r.failure_kind, r.start_id, r.operation_id`
/** So many are they: what a statement selects besides comes after. */
export const RUN_WIDTH = 32

/** `inputHash` is '' where whoever wrote the row could not compute it. */
export function toRun(row: Row): RunRecord {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    definition: text(row[2]),
    kind: row[3] === null ? null : toKind(row[3]),
    queue: row[4] === '' ? null : text(row[4]),
    priority: number(row[5]),
    partitionKey: textOrNull(row[6]),
    lane: textOrNull(row[7]),
    rank: number(row[8]),
    dedupId: textOrNull(row[9]),
    status: toStatus(row[10]),
    inputHash: textOrNull(row[11]) ?? '',
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
