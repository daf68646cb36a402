/** Commands of the run that is being worked on, all of them under the fence. */

import { flag, number, numberOrNull } from '../columns.ts'
import type {
  CheckpointCommand,
  ExpireCommand,
  FencedOutcome,
  PerformCommand,
  PerformOutcome,
  Refusal,
  SettleCommand,
  Settlement,
  WaitCommand,
  WaitOutcome,
} from '../commands.ts'
import type { Ending, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import * as transitions from '../transitions.ts'
import { applyTransition } from './apply.ts'
import { findHeld, findRecorded, newEntries, record } from './checkpoints.ts'
import { act, startIdOf } from './effects.ts'
import { findRun, runAt, toStatus, updateSettled } from './runs.ts'
import type { Transaction } from './transaction.ts'
import { awaitRuns, findOpenWaits, findWait, hasSignalled, openWait, resolveWait, toOutcome } from './waits.ts'

const CLAIM_LOST = { type: 'claimLost' } as const

export function checkpoint(transaction: Transaction, command: CheckpointCommand): FencedOutcome {
  const run = findHeld(transaction.database, command)
  if (run === undefined) return CLAIM_LOST
  const before = transaction.ripples
  const refusals = record(transaction, run, command.entries)
  return {
    type: 'applied',
    status: 'PENDING',
    ending: null,
    cancelRequested: run.cancelRequested,
    dueAt: null,
    rippled: transaction.ripples > before,
    refusals,
  }
}

export function settle(transaction: Transaction, command: SettleCommand): FencedOutcome {
  return succeed(transaction, command) ?? settleInFull(transaction, command)
}

export const FENCED_END = `
select seq, (select max(c.seq) from perdure_checkpoints c where c.run = r.seq)
from perdure_runs r where id = ? and status = 'PENDING' and token = ? and cancel_requested = 0 and lane = ''
  and not exists (select 1 from perdure_queues q where q.name = r.queue and q.partitioned = 1)
  and not exists (select 1 from perdure_waits w where w.run = r.seq)
  and not exists (select 1 from perdure_waits w indexed by perdure_waits_runs where w.type = 'child' and w.key = r.id)`

/**
 * The end of most runs, of which nothing follows: so few columns are looked at, and so few are changed. What becomes of
 * them is what `settleInFull` would do. undefined: this is none of them.
 */
function succeed(transaction: Transaction, command: SettleCommand): FencedOutcome | undefined {
  const { database, now } = transaction
  const { runId, token, entries, settlement } = command
  if (settlement.type !== 'succeed') return undefined
  const row = database.prepare(FENCED_END).get(runId, token)
  if (row === undefined) return undefined
  const [seq, last] = [number(row[0]), numberOrNull(row[1])]
  const before = transaction.ripples
  const refusals = record(transaction, { seq, token, last, cancelRequested: false, waits: false }, entries)
  const ending = { status: 'SUCCESS', output: settlement.output } as const
  updateSettled(database, { seq, status: 'SUCCESS', endedAt: now, failureKind: null }, ending)
  return {
    type: 'applied',
    status: 'SUCCESS',
    ending,
    cancelRequested: false,
    dueAt: null,
    rippled: transaction.ripples > before,
    refusals,
  }
}

function settleInFull(transaction: Transaction, command: SettleCommand): FencedOutcome {
  const { database, now } = transaction
  const { token, settlement } = command
  const run = findRun(database, command.runId)
  if (run === undefined) return CLAIM_LOST
  if (transitions.settledBy(run, token)) return settled(run, { ending: null, rippled: false, refusals: [] })
  if (!transitions.holds(run, token)) return CLAIM_LOST
  const before = transaction.ripples
  const refusals = command.entries.length === 0 ? [] : recordLast(transaction, run, command)
  const transition = transitions.settle(run, settlement, now, isReady(transaction, run, settlement))
  const row = applyTransition(transaction, run, transition)
  if (row.status === 'WAITING' && settlement.type === 'suspend') awaitRuns(database, row.seq, settlement.children)
  return settled(row, { ending: transition.ending, rippled: transaction.ripples > before, refusals })
}

export const LAST_ENTRY = `
select (select max(seq) from perdure_checkpoints where run = ?), exists (select 1 from perdure_waits where run = ?)`

/** The entries that come with a settlement. */
function recordLast(transaction: Transaction, run: RunRecord, { token, entries }: SettleCommand): readonly Refusal[] {
  const { seq, cancelRequested } = run
  const [last, waits] = transaction.prepare(LAST_ENTRY).get(seq, seq) ?? []
  return record(transaction, { seq, token, last: numberOrNull(last), cancelRequested, waits: flag(waits) }, entries)
}

export const STATUS_OF = 'select status from perdure_runs where id = ?'

/** True if what a run is suspended for is there already. */
function isReady({ database }: Transaction, run: RunRecord, settlement: Settlement): boolean {
  if (settlement.type !== 'suspend') return false
  if (hasSignalled(database, run.seq)) return true
  return settlement.children.some(({ runId }) => {
    const row = database.prepare(STATUS_OF).get(runId)
    return row === undefined || isTerminal(toStatus(row[0]))
  })
}

function settled(
  run: RunRecord,
  {
    ending,
    rippled,
    refusals,
  }: {
    readonly ending: Ending | null
    readonly rippled: boolean
    readonly refusals: readonly Refusal[]
  },
): FencedOutcome {
  const dueAt = run.status === 'WAITING' ? run.dueAt : null
  return { type: 'applied', status: run.status, ending, cancelRequested: false, dueAt, rippled, refusals }
}

export function perform(transaction: Transaction, { runId, token, entry, action }: PerformCommand): PerformOutcome {
  const run = findHeld(transaction.database, { runId, token })
  if (run === undefined) return CLAIM_LOST
  const { cancelRequested } = run
  const recorded = findRecorded(transaction.database, run, entry)
  if (recorded !== undefined) return { type: 'performed', value: recorded, cancelRequested }
  const done = act(transaction, action, startIdOf(token, entry))
  if (done.type === 'refused') return done
  record(transaction, run, [{ ...entry, value: done.value }])
  return { type: 'performed', value: done.value, cancelRequested }
}

export function wait(transaction: Transaction, command: WaitCommand): WaitOutcome {
  const { database } = transaction
  const { position, key, entries } = command
  const run = findHeld(database, command)
  if (run === undefined) return CLAIM_LOST
  const found = findWait(database, run.seq, position)
  if (found === undefined) {
    const [open] = findOpenWaits(database, key)
    if (open !== undefined && open.run !== run.seq) {
      newEntries(database, run, entries)
      return { type: 'taken', holder: runAt(database, open.run).id }
    }
  }
  record(transaction, run, entries)
  return toOutcome(found ?? openWait(database, run.seq, position, key))
}

export function expire(transaction: Transaction, command: ExpireCommand): WaitOutcome {
  const { database } = transaction
  const { position } = command
  const run = findHeld(database, command)
  if (run === undefined) return CLAIM_LOST
  const found = findWait(database, run.seq, position)
  if (found?.state === 'open') resolveWait(database, { run: run.seq, position }, { state: 'expired', payload: null })
  // The outcome of one that is there no more was recorded: nothing can come of it.
  return found?.state === 'signalled' ? toOutcome(found) : { type: 'expired' }
}
