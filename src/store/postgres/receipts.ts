/** Receipts of commands (commit/): removed when no resend can ask for them any more. */
import type { EpochMs } from '../../core/clock.ts'
import { number } from '../columns.ts'
import type { Transaction } from './session.ts'

const KEPT_MS = 24 * 60 * 60 * 1_000

/** By their places in the table, so that no plan reads all of it to join it with these. */
export const DELETE_RECEIPTS = `
with removed as (
  delete from perdure.receipts where ctid = any(array(
    select ctid from perdure.receipts where given_at < $1 order by given_at limit $2 for update skip locked))
  returning 1)
select pg_catalog.count(*) from removed`

/** Removes at most `limit`. Answers how many. */
export async function sweepReceipts(transaction: Transaction, now: EpochMs, limit: number): Promise<number> {
  const [row] = await transaction.query(DELETE_RECEIPTS, [now - KEPT_MS, limit])
  return number(row?.[0])
}
