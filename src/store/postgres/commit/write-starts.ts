/** Runs that a batch creates. */
import type { EpochMs } from '../../../core/clock.ts'
import { invariant } from '../../../core/invariant.ts'
import type { Transaction } from '../session.ts'
import { insertedUnless } from '../taken.ts'
import type { WorkingSet } from './working-set.ts'

/**
 * By id, so that two batches that start the same runs wait for each other in one direction. An id, or a deduplication
 * id, that another transaction has taken meanwhile is an error: it comes seldom, and to look for it beforehand in each
 * index costs a third of the statement.
 */
export const INSERT_RUNS = `
with given as materialized (
  select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::text[], $15::text[], $16::bigint[],
    $17::text[], $18::text[], $19::integer[], $20::integer[], $21::bigint[], $22::bigint[], $23::bigint[],
    $24::boolean[], $25::bigint[], $26::bigint[], $27::text[], $28::text[], $29::text[], $30::text[])
    as u (seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status, input_hash, due_at,
      token, owner, lease_until, version, parent_id, deliveries, attempt, max_recoveries, timeout_ms, deadline_at,
      cancel_requested, started_at, ended_at, failure_kind, start_id, operation_id, input)),
inputs as (insert into perdure.inputs (run, input) select seq, input from given)
insert into perdure.runs (seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status,
  input_hash, due_at, token, owner, lease_until, epoch, version, parent_id, deliveries, attempt, crashes,
  max_recoveries, timeout_ms, deadline_at, cancel_requested, created_at, started_at, ended_at, failure_kind, start_id,
  operation_id)
select seq, id, definition, kind, queue, priority, partition_key, lane, rank, dedup_id, status, input_hash, due_at,
  token, owner, lease_until, 0, version, parent_id, deliveries, attempt, 0, max_recoveries, timeout_ms, deadline_at,
  cancel_requested, $31, started_at, ended_at, failure_kind, start_id, operation_id
from given order by id collate "C"`

export async function insertRuns(transaction: Transaction, rows: WorkingSet, now: EpochMs): Promise<void> {
  const { size } = rows.runs.created
  if (size === 0) return
  const runs = [...rows.runs.created.values()]
  const inserted = transaction.query(INSERT_RUNS, [
    runs.map((run) => run.seq),
    runs.map((run) => run.id),
    runs.map((run) => run.definition),
    runs.map((run) => run.kind),
    runs.map((run) => run.queue ?? ''),
    runs.map((run) => run.priority),
    runs.map((run) => run.partitionKey),
    runs.map((run) => run.lane),
    runs.map((run) => run.rank),
    runs.map((run) => run.dedupId),
    runs.map((run) => run.status),
    runs.map((run) => run.inputHash),
    runs.map((run) => run.dueAt),
    runs.map((run) => run.token),
    runs.map((run) => run.owner),
    runs.map((run) => run.leaseUntil),
    runs.map((run) => run.version),
    runs.map((run) => run.parentId),
    runs.map((run) => run.deliveries),
    runs.map((run) => run.attempt),
    runs.map((run) => run.maxRecoveries),
    runs.map((run) => run.timeoutMs),
    runs.map((run) => run.deadlineAt),
    runs.map((run) => run.cancelRequested),
    runs.map((run) => run.startedAt),
    runs.map((run) => run.endedAt),
    runs.map((run) => run.failureKind),
    runs.map((run) => run.startId),
    runs.map((run) => run.operationId),
    runs.map((run) => inputOf(rows, run.id)),
    now,
  ])
  await insertedUnless(inserted, 'a run was started')
}

function inputOf(rows: WorkingSet, id: string): string {
  const input = rows.inputs.get(id)
  invariant(input !== undefined, `run ${id} was created without its input`)
  return input
}

export const FILL_HASHES = `
update perdure.runs r set input_hash = u.hash from unnest($1::bigint[], $2::text[]) as u (seq, hash)
where r.seq = u.seq and r.input_hash is null`

/** Of inputs that SQL has written, for the next who compares. */
export async function fillHashes(transaction: Transaction, { hashes }: WorkingSet): Promise<void> {
  if (hashes.size > 0) await transaction.query(FILL_HASHES, [[...hashes.keys()], [...hashes.values()]])
}
