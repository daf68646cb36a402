/** Rows of runs that were there, their endings and their past attempts. */
import type { EpochMs } from '../../../core/clock.ts'
import { invariant } from '../../../core/invariant.ts'
import { number } from '../../columns.ts'
import type { Ending, RunRecord } from '../../records.ts'
import type { Transaction } from '../session.ts'
import { insertedUnless } from '../taken.ts'
import type { WorkingSet } from './working-set.ts'

/**
 * What the end of a delivery changes if it ends the run. $5, $6: how it ended, which is not there yet (a requeue takes it
 * away); $7: runs whose waits are not known.
 */
export const END_RUNS = `
with ended as (
  update perdure.runs r
  set status = u.status, due_at = null, lease_until = null, ended_at = $4, failure_kind = u.failure_kind
  from unnest($1::bigint[], $2::text[], $3::text[]) as u (seq, status, failure_kind)
  where r.seq = u.seq returning 1),
endings as (
  insert into perdure.endings (run, output, error)
  select run, output, error from unnest($1::bigint[], $5::text[], $6::text[]) as u (run, output, error)),
waitless as (delete from perdure.waits where run = any($7::bigint[]))
select pg_catalog.count(*) from ended`

export async function endRuns(
  transaction: Transaction,
  { endings, waitless }: WorkingSet,
  runs: readonly RunRecord[],
  now: EpochMs,
): Promise<void> {
  if (runs.length === 0) return
  const ends = runs.map(({ id }) => columnsOf(endings.get(id) ?? null))
  const [row] = await transaction.query(END_RUNS, [
    runs.map(({ seq }) => seq),
    runs.map(({ status }) => status),
    runs.map(({ failureKind }) => failureKind),
    now,
    ends.map(({ output }) => output),
    ends.map(({ error }) => error),
    runs.flatMap(({ seq }) => (waitless.has(seq) ? [seq] : [])),
  ])
  invariant(number(row?.[0]) === runs.length, 'runs have vanished inside a transaction')
}

function columnsOf(ending: Ending | null): { readonly output: string | null; readonly error: string | null } {
  if (ending === null) return { output: null, error: null }
  if (ending.status === 'SUCCESS') return { output: ending.output, error: null }
  return { output: null, error: ending.failure.error }
}

/** What any other transition may change. */
export const UPDATE_RUNS = `
with updated as (
  update perdure.runs r
  set lane = u.lane, rank = u.rank, status = u.status, due_at = u.due_at, token = u.token, owner = u.owner,
    lease_until = u.lease_until, epoch = u.epoch, attempt = u.attempt, crashes = u.crashes,
    deadline_at = u.deadline_at, cancel_requested = u.cancel_requested, started_at = u.started_at,
    ended_at = u.ended_at, failure_kind = u.failure_kind, operation_id = u.operation_id
  from unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::bigint[], $15::bigint[],
    $16::text[], $17::text[])
    as u (seq, lane, rank, status, due_at, token, owner, lease_until, epoch, attempt, crashes, deadline_at,
      cancel_requested, started_at, ended_at, failure_kind, operation_id)
  where r.seq = u.seq returning 1)
select pg_catalog.count(*) from updated`

export async function updateRuns(transaction: Transaction, runs: readonly RunRecord[]): Promise<void> {
  if (runs.length === 0) return
  const [row] = await transaction.query(UPDATE_RUNS, [
    runs.map((run) => run.seq),
    runs.map((run) => run.lane),
    runs.map((run) => run.rank),
    runs.map((run) => run.status),
    runs.map((run) => run.dueAt),
    runs.map((run) => run.token),
    runs.map((run) => run.owner),
    runs.map((run) => run.leaseUntil),
    runs.map((run) => run.epoch),
    runs.map((run) => run.attempt),
    runs.map((run) => run.crashes),
    runs.map((run) => run.deadlineAt),
    runs.map((run) => run.cancelRequested),
    runs.map((run) => run.startedAt),
    runs.map((run) => run.endedAt),
    runs.map((run) => run.failureKind),
    runs.map((run) => run.operationId),
  ])
  invariant(number(row?.[0]) === runs.length, 'runs have vanished inside a transaction')
}

/** Requeued runs take back their deduplication ids: another run may have been faster. */
export async function takeBack(transaction: Transaction, runs: readonly RunRecord[]): Promise<void> {
  await insertedUnless(updateRuns(transaction, runs), 'a deduplication id was taken')
}

export const WRITE_ENDINGS = `
insert into perdure.endings (run, output, error)
select run, output, error from unnest($1::bigint[], $2::text[], $3::text[]) as u (run, output, error)
on conflict (run) do update set output = excluded.output, error = excluded.error`
export const DELETE_ENDINGS = 'delete from perdure.endings where run = any($1::bigint[])'

/** Of runs that `endRuns` does not write. A requeue takes the ending away. */
export async function writeEndings(
  transaction: Transaction,
  { endings, runs }: WorkingSet,
  written: ReadonlySet<number>,
): Promise<void> {
  if (endings.size === written.size) return
  const ended: { readonly run: number; readonly output: string | null; readonly error: string | null }[] = []
  const removed: number[] = []
  for (const [id, ending] of endings) {
    const { seq } = runs.at(id)
    if (written.has(seq)) continue
    if (ending === null) removed.push(seq)
    else ended.push({ run: seq, ...columnsOf(ending) })
  }
  await Promise.all([
    removed.length > 0 ? transaction.query(DELETE_ENDINGS, [removed]) : null,
    ended.length > 0
      ? transaction.query(WRITE_ENDINGS, [
          ended.map(({ run }) => run),
          ended.map(({ output }) => output),
          ended.map(({ error }) => error),
        ])
      : null,
  ])
}

/** Past attempts are numbered within their run, from 0. */
export const INSERT_ATTEMPTS = `
insert into perdure.attempts (run, number, epoch, attempt, outcome, owner, started_at, ended_at, failure_kind)
select u.run,
  coalesce((select pg_catalog.max(a.number) + 1 from perdure.attempts a where a.run = u.run), 0)
    + pg_catalog.row_number() over (partition by u.run order by u.n) - 1,
  u.epoch, u.attempt, u.outcome, u.owner, u.started_at, u.ended_at, u.failure_kind
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[])
  with ordinality as u (run, epoch, attempt, outcome, owner, started_at, ended_at, failure_kind, n)`

export async function insertAttempts(transaction: Transaction, { attempts }: WorkingSet): Promise<void> {
  if (attempts.length === 0) return
  await transaction.query(INSERT_ATTEMPTS, [
    attempts.map(({ run }) => run),
    attempts.map(({ attempt }) => attempt.epoch),
    attempts.map(({ attempt }) => attempt.attempt),
    attempts.map(({ attempt }) => attempt.outcome),
    attempts.map(({ attempt }) => attempt.owner),
    attempts.map(({ attempt }) => attempt.startedAt),
    attempts.map(({ attempt }) => attempt.endedAt),
    attempts.map(({ attempt }) => attempt.failureKind),
  ])
}
