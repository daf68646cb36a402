/** Answers to commands that leave nothing else to recognise them by, for as long as a resend may come. */
import type { EpochMs } from '../../core/clock.ts'
import { flag, text, UnreadableValueError, word } from '../columns.ts'
import type { KvOutcome, SignalOutcome } from '../commands.ts'
import type { Database } from './database.ts'

const KEPT_MS = 24 * 60 * 60 * 1_000

export const RECEIPT_OF = `
select outcome ->> 'type', outcome ->> 'applied', outcome ->> 'runId', outcome ->> 'woken'
from perdure_receipts where command_id = ?`
export const INSERT_RECEIPT = 'insert into perdure_receipts (command_id, outcome, given_at) values (?, ?, ?)'

/** What the signal was answered before, or else what `act` answers, which is kept. */
export function signalOnce(
  database: Database,
  { commandId, now }: { readonly commandId: string; readonly now: EpochMs },
  act: () => SignalOutcome,
): SignalOutcome {
  const receipt = database.prepare(RECEIPT_OF).get(commandId)
  if (receipt === undefined) return keep(database, commandId, act(), now)
  const type = toSignalled(receipt[0])
  return type === 'delivered' ? { type, runId: text(receipt[2]), woken: flag(receipt[3]) } : { type }
}

const toSignalled = word(['delivered', 'buffered', 'replaced'] as const)

/** What the change of the KV space was answered before, or else what `act` answers, which is kept. */
export function changeOnce(
  database: Database,
  { commandId, now }: { readonly commandId: string; readonly now: EpochMs },
  act: () => KvOutcome,
): KvOutcome {
  const receipt = database.prepare(RECEIPT_OF).get(commandId)
  if (receipt === undefined) return keep(database, commandId, act(), now)
  if (receipt[0] !== 'kv') throw new UnreadableValueError(`command ${commandId} was a ${String(receipt[0])} before`)
  return { type: 'kv', applied: flag(receipt[1]) }
}

function keep<Outcome extends object>(database: Database, commandId: string, outcome: Outcome, now: EpochMs): Outcome {
  database.prepare(INSERT_RECEIPT).run(commandId, JSON.stringify(outcome), now)
  return outcome
}

/** In the order in which they were given, which follows the clock. */
export const DELETE_RECEIPTS = `
delete from perdure_receipts where number in (
  select number from perdure_receipts order by number limit ?) and given_at < ?`

/** Removes those that no resend can ask for any more, at most `limit`. Answers how many. */
export function sweepReceipts(database: Database, now: EpochMs, limit: number): number {
  return Number(database.prepare(DELETE_RECEIPTS).run(limit, now - KEPT_MS).changes)
}

export const OLDEST_RECEIPT = 'select given_at from perdure_receipts order by number limit 1'

/** True if `sweepReceipts` would remove any. */
export function areReceiptsOld(database: Database, now: EpochMs): boolean {
  const oldest = database.prepare(OLDEST_RECEIPT).get()
  return oldest !== undefined && Number(oldest[0]) < now - KEPT_MS
}
