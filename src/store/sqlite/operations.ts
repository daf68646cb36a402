/** Commands from outside: of an operator, or of whoever sends a signal. */
import type {
  CancelCommand,
  CancelOutcome,
  HeldDedup,
  KvCommand,
  KvOutcome,
  RequeueCommand,
  RequeueOutcome,
  SignalCommand,
  SignalOutcome,
} from '../commands.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import { applyTransition } from './apply.ts'
import { retireFailures } from './checkpoints.ts'
import { findHolder } from './enqueue.ts'
import { changeValue } from './kv.ts'
import { changeOnce, signalOnce } from './receipts.ts'
import { deleteEnding, findRun } from './runs.ts'
import { sendSignal } from './signals.ts'
import type { Transaction } from './transaction.ts'

export function cancel(transaction: Transaction, { runId, commandId }: CancelCommand): CancelOutcome {
  const run = findRun(transaction.database, runId)
  if (run === undefined) return { type: 'notCancelled', status: null }
  if (run.operationId === commandId) return cancelled(run, false)
  const transition = transitions.cancel(run, commandId, transaction.now)
  if (transition === null) return { type: 'notCancelled', status: run.status }
  const before = transaction.ripples
  const row = applyTransition(transaction, run, transition)
  return cancelled(row, transaction.ripples > before)
}

/** Only a run that was asked to end, and didn't end at once, carries the request. */
function cancelled(run: RunRecord, rippled: boolean): CancelOutcome {
  if (!run.cancelRequested) return { type: 'cancelled', rippled }
  return { type: 'requested', owner: run.owner, token: run.token }
}

export function requeue(transaction: Transaction, { runId, commandId }: RequeueCommand): RequeueOutcome {
  const { database, now } = transaction
  const run = findRun(database, runId)
  if (run === undefined) return { type: 'notRequeued', status: null, holder: null }
  if (run.operationId === commandId) return { type: 'requeued' }
  const transition = transitions.requeue(run, commandId, now)
  const holder = transition === null ? null : otherHolder(transaction, run)
  if (transition === null || holder !== null) return { type: 'notRequeued', status: run.status, holder }
  retireFailures(database, run)
  deleteEnding(database, run.seq)
  // While it had ended, it took no part in changes of its queue.
  const place = transitions.placeInQueue(run, transaction.queue(run.queue))
  applyTransition(transaction, run, { ...transition, run: { ...transition.run, ...place } })
  return { type: 'requeued' }
}

function otherHolder({ database }: Transaction, { queue, dedupId }: RunRecord): HeldDedup | null {
  if (queue === null || dedupId === null) return null
  const holder = findHolder(database, queue, dedupId)
  return holder === undefined ? null : { queue, dedupId, holder: holder.id }
}

export function signal(transaction: Transaction, { commandId, key, payload }: SignalCommand): SignalOutcome {
  const { database, now } = transaction
  return signalOnce(database, { commandId, now }, () => sendSignal(transaction, key, payload))
}

export function kv({ database, now }: Transaction, { commandId, change }: KvCommand): KvOutcome {
  return changeOnce(database, { commandId, now }, () => changeValue(database, change))
}
