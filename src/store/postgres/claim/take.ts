/** Stores claimed runs, all of a claim in one statement; their rows are locked. */
import type { ClaimedRun } from '../../contract.ts'
import type { RunRecord } from '../../records.ts'
import type { Transaction } from '../session.ts'

/** What a claim changes of a row. A run that goes on waits for no child any more. */
export const TAKE = `
with forgotten as (
  delete from perdure.waits w using unnest($12::bigint[]) as a (run) where w.run = a.run and w.type = 'child')
update perdure.runs r set status = 'PENDING', due_at = null, owner = $13, kind = c.kind,
  max_recoveries = c.max_recoveries, timeout_ms = c.timeout_ms, token = c.token, lease_until = c.lease_until,
  version = c.version, deliveries = c.deliveries, attempt = c.attempt, deadline_at = c.deadline_at,
  started_at = c.started_at
from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[],
    $8::integer[], $9::integer[], $10::bigint[], $11::bigint[])
  as c (seq, kind, max_recoveries, timeout_ms, token, lease_until, version, deliveries, attempt, deadline_at, started_at)
where r.seq = c.seq`

/** `resumed`: places of those that were suspended. */
export async function take(
  transaction: Transaction,
  owner: string,
  claimed: readonly ClaimedRun[],
  resumed: readonly number[],
): Promise<void> {
  const column = <T>(of: (run: RunRecord) => T): readonly T[] => claimed.map(({ run }) => of(run))
  await transaction.query(TAKE, [
    column(({ seq }) => seq),
    column(({ kind }) => kind),
    column(({ maxRecoveries }) => maxRecoveries),
    column(({ timeoutMs }) => timeoutMs),
    column(({ token }) => token),
    column(({ leaseUntil }) => leaseUntil),
    column(({ version }) => version),
    column(({ deliveries }) => deliveries),
    column(({ attempt }) => attempt),
    column(({ deadlineAt }) => deadlineAt),
    column(({ startedAt }) => startedAt),
    resumed,
    owner,
  ])
}
