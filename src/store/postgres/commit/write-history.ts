/** Histories of runs: what is recorded, and what a requeue moves to the past. */
import type { EpochMs } from '../../../core/clock.ts'
import type { Transaction } from '../session.ts'
import type { WorkingSet } from './working-set.ts'

export const INSERT_ENTRIES = `
insert into perdure.checkpoints
  (run, seq, type, position, verb, name, failed, value, calls, delivered, notes, recorded_at, attempts)
select run, seq, type, position, verb, name, failed, value, calls, delivered, notes, $13, attempts
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::boolean[], $8::text[],
  $9::bigint[], $10::bigint[], $11::text[], $12::bigint[])
  as u (run, seq, type, position, verb, name, failed, value, calls, delivered, notes, attempts)`

export async function writeEntries(transaction: Transaction, { entries }: WorkingSet, now: EpochMs): Promise<void> {
  if (entries.length === 0) return
  await transaction.query(INSERT_ENTRIES, [
    entries.map(({ run }) => run),
    entries.map(({ entry }) => entry.seq),
    entries.map(({ entry }) => entry.type),
    entries.map(({ entry }) => entry.position),
    entries.map(({ entry }) => entry.verb),
    entries.map(({ entry }) => entry.name),
    entries.map(({ entry }) => entry.failed),
    entries.map(({ entry }) => entry.value),
    entries.map(({ entry }) => entry.calls),
    entries.map(({ entry }) => entry.delivered),
    entries.map(({ entry }) => entry.notes),
    entries.map(({ entry }) => entry.attempts),
    now,
  ])
}

const ENTRY_COLUMNS = `seq, type, position, verb, name, failed, value, calls, delivered, notes, recorded_at, attempts`

/** Everything from the first failed outcome on, under the epoch that the run leaves. */
export const RETIRE_FAILURES = `
with failed as (
  select u.run, u.epoch, (
    select pg_catalog.min(c.seq) from perdure.checkpoints c
    where c.run = u.run and c.type = 'outcome' and c.failed) as first
  from unnest($1::bigint[], $2::bigint[]) as u (run, epoch)),
retired as (
  delete from perdure.checkpoints c using failed f where c.run = f.run and c.seq >= f.first
  returning f.epoch as past, c.*)
insert into perdure.past_checkpoints (run, epoch, ${ENTRY_COLUMNS})
select run, past, ${ENTRY_COLUMNS} from retired`

export async function retireFailures(transaction: Transaction, { requeued, runs }: WorkingSet): Promise<void> {
  if (requeued.size === 0) return
  const ids = [...requeued.keys()]
  await transaction.query(RETIRE_FAILURES, [ids.map((id) => runs.at(id).seq), [...requeued.values()]])
}
