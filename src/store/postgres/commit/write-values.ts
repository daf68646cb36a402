/** The KV space, and receipts. */
import type { EpochMs } from '../../../core/clock.ts'
import { number } from '../../columns.ts'
import type { Transaction } from '../session.ts'
import { Interference } from '../session.ts'
import type { WorkingSet } from './working-set.ts'

/** In the order of the keys, as everywhere. */
export const PUT_VALUES = `
insert into perdure.kv (key, value, hash)
select key, value, hash from unnest($1::text[], $2::text[], $3::text[]) as u (key, value, hash) order by key collate "C"
on conflict (key) do update set value = excluded.value, hash = excluded.hash`
/** Somebody was told that they held nothing. */
export const PUT_NEW_VALUES = `
insert into perdure.kv (key, value, hash)
select key, value, hash from unnest($1::text[], $2::text[], $3::text[]) as u (key, value, hash) order by key collate "C"
on conflict do nothing returning 1`
export const DELETE_VALUES = 'delete from perdure.kv where key = any($1::text[])'

export async function writeValues(transaction: Transaction, { kv }: WorkingSet): Promise<void> {
  const { changes } = kv
  if (changes.length === 0) return
  const put = changes.filter(({ value, mustBeNew }) => value !== null && !mustBeNew)
  const putNew = changes.filter(({ value, mustBeNew }) => value !== null && mustBeNew)
  const deleted = changes.filter(({ value }) => value === null)
  const columns = (values: typeof changes): readonly unknown[] => [
    values.map(({ key }) => key),
    values.map(({ value }) => value),
    values.map(({ hash }) => hash),
  ]
  await Promise.all([
    deleted.length > 0 ? transaction.query(DELETE_VALUES, [deleted.map(({ key }) => key)]) : null,
    put.length > 0 ? transaction.query(PUT_VALUES, columns(put)) : null,
    putNew.length > 0
      ? transaction.query(PUT_NEW_VALUES, columns(putNew)).then((rows) => {
          if (rows.length !== putNew.length) throw new Interference('a key was given its first value')
        })
      : null,
  ])
}

export const INSERT_RECEIPTS = `
with kept as (
  insert into perdure.receipts (command_id, outcome, given_at)
  select id, outcome, $3 from unnest($1::text[], $2::text[]) as u (id, outcome) order by id collate "C"
  on conflict do nothing returning 1)
select pg_catalog.count(*) from kept`

export async function writeReceipts(
  transaction: Transaction,
  { signalReceipts, kvReceipts }: WorkingSet,
  now: EpochMs,
): Promise<void> {
  const given = [...signalReceipts.given, ...kvReceipts.given]
  if (given.length === 0) return
  const values = [given.map(({ commandId }) => commandId), given.map(({ outcome }) => outcome), now]
  const [row] = await transaction.query(INSERT_RECEIPTS, values)
  if (number(row?.[0]) !== given.length) throw new Interference('a command was sent twice at once')
}
