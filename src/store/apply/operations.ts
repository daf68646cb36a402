/** Commands from outside: of an operator, or of whoever sends a signal. */
import type { EpochMs } from '../../core/clock.ts'
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
import { rippleOn, signal as send } from './ripples.ts'
import type { Rows } from './rows.ts'

export function cancel(rows: Rows, command: CancelCommand, now: EpochMs): CancelOutcome {
  const run = rows.runs.get(command.runId)
  if (run === undefined) return { type: 'notCancelled', status: null }
  if (run.operationId === command.commandId) return cancelled(run, false)
  const transition = transitions.cancel(run, command.commandId, now)
  if (transition === null) return { type: 'notCancelled', status: run.status }
  const row = rows.apply(transition)
  return cancelled(row, rippleOn(rows, row, now))
}

/** Only a run that was asked to end, and didn't end at once, carries the request. */
function cancelled(run: RunRecord, rippled: boolean): CancelOutcome {
  if (!run.cancelRequested) return { type: 'cancelled', rippled }
  return { type: 'requested', owner: run.owner, token: run.token }
}

export function requeue(rows: Rows, command: RequeueCommand, now: EpochMs): RequeueOutcome {
  const run = rows.runs.get(command.runId)
  if (run === undefined) return { type: 'notRequeued', status: null, holder: null }
  if (run.operationId === command.commandId) return { type: 'requeued' }
  const transition = transitions.requeue(run, command.commandId, now)
  const holder = transition === null ? null : otherHolder(rows, run)
  if (transition === null || holder !== null) return { type: 'notRequeued', status: run.status, holder }
  // While it had ended, it took no part in changes of its queue.
  const place = transitions.placeInQueue(run, rows.queue(run.queue))
  rows.apply({ ...transition, run: { ...transition.run, ...place } })
  rows.forgetFailures(run.id)
  return { type: 'requeued' }
}

function otherHolder(rows: Rows, { queue, dedupId }: RunRecord): HeldDedup | null {
  if (queue === null || dedupId === null) return null
  const holder = rows.runs.holderOf(queue, dedupId)
  return holder === undefined ? null : { queue, dedupId, holder: holder.id }
}

export function signal(rows: Rows, { commandId, key, payload }: SignalCommand, now: EpochMs): SignalOutcome {
  return rows.signalReceipts.once(commandId, now, () => send(rows, key, payload, now))
}

export function kv(rows: Rows, { commandId, change }: KvCommand, now: EpochMs): KvOutcome {
  return rows.kvReceipts.once(commandId, now, () => rows.kv.change(change))
}
