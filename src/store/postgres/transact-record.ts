/**
 * The record of a user's transaction, and its fence, made in the transaction itself, after its body.
 *
 * The fence locks the row of the run. At REPEATABLE READ and above that fails if the row has changed since the snapshot,
 * as each renewal of the lease does: a transaction of some length would never get through. There the row is locked by a
 * second connection instead, until the first one has committed. What follows looks at nothing that a snapshot hides: the
 * run's history was complete before the transaction began, and is held since.
 */
import { invariant } from '../../core/invariant.ts'
import { flag, number, numberOrNull, textOrNull } from '../columns.ts'
import type { TransactRequest } from '../contract.ts'
import type { EncodedValue } from '../records.ts'
import type { Session, Transaction } from './session.ts'
import { NOW } from './session.ts'

/** A run whose claim is held, and its row locked. */
export interface FencedRun {
  readonly seq: number
  readonly cancelRequested: boolean
}

type Claim = Pick<TransactRequest, 'runId' | 'token'>

export const FENCE = `
select seq, cancel_requested from perdure.runs
where id = $1 and status = 'PENDING' and token = $2 for no key update`

/** undefined: the claim is lost. */
export async function fence(session: Session, { runId, token }: Claim): Promise<FencedRun | undefined> {
  const [row] = await session.query(FENCE, [runId, token])
  return row === undefined ? undefined : { seq: number(row[0]), cancelRequested: flag(row[1]) }
}

export const LAST_ENTRY = `
select ${NOW}, (select pg_catalog.max(c.seq) from perdure.checkpoints c where c.run = $1::bigint)`
export const INSERT_ENTRY = `
insert into perdure.checkpoints
  (run, seq, type, position, verb, name, failed, value, calls, delivered, notes, recorded_at, attempts)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

/** Records the entry, which comes next in the history of the run. */
export async function insertEntry(
  transaction: Transaction,
  { seq: run }: FencedRun,
  { entry }: Pick<TransactRequest, 'entry'>,
  value: EncodedValue,
): Promise<void> {
  const [row] = await transaction.query(LAST_ENTRY, [run])
  const last = numberOrNull(row?.[1] ?? null) ?? -1
  const { seq, type, position, verb, name, failed, calls, delivered, notes, attempts } = entry
  invariant(seq === last + 1, `entry ${seq} would not follow the last one of a history, ${last}`)
  const values = [run, seq, type, position, verb, name, failed, value, calls, delivered, notes]
  await transaction.query(INSERT_ENTRY, [...values, transaction.instant(row?.[0]), attempts])
}

export const RECORDED = `
select position, verb, name, value from perdure.checkpoints where run = $1::bigint and seq = $2`
/** Waits for whoever is about to record the same entry: until then it is not known whether there is one. */
export const TRY_ENTRY = `${INSERT_ENTRY} on conflict (run, seq) do nothing`

/** The value recorded under the entry, if there is one. To be rolled back. */
export async function findRecorded(
  session: Session,
  { seq: run }: FencedRun,
  { entry }: Pick<TransactRequest, 'entry'>,
): Promise<EncodedValue | undefined> {
  const { seq, type, position, verb, name, failed, calls, delivered, notes, attempts } = entry
  await session.query(TRY_ENTRY, [
    ...[run, seq, type, position, verb, name, failed, null, calls, delivered, notes, 0, attempts],
  ])
  const [row] = await session.query(RECORDED, [run, seq])
  const value = textOrNull(row?.[3] ?? null)
  if (value === null) return undefined
  invariant(row?.[0] === position && row[1] === verb && row[2] === name, `entry ${seq} was recorded as another one`)
  return value
}
