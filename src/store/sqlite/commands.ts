/**
 * The commit lane: what each command does, inside the transaction of its batch. A command that is refused has
 * changed nothing; one that throws takes the batch with it.
 */
import type { EpochMs } from '../../core/clock.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type {
  CancelCommand,
  CancelOutcome,
  CheckpointCommand,
  Command,
  FencedOutcome,
  Outcome,
  RequeueCommand,
  RequeueOutcome,
  SettleCommand,
} from '../contract.ts'
import type { Ending, RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import { record, recordFenced, retireFailures } from './checkpoints.ts'
import type { Database } from './database.ts'
import { enqueue } from './enqueue.ts'
import { applyTransition, deleteEnding, findRun } from './runs.ts'

/** A transaction blocks the event loop of its process, so it ends after about this long. */
const LONGEST_WORK_MS = 8

/** Applies commands, in order, until the time is up: at least one. */
export function applyBatch(database: Database, commands: readonly Command[]): readonly Outcome[] {
  const start = realScheduler.monotonic()
  const now = database.clock.now()
  const outcomes: Outcome[] = []
  for (const command of commands) {
    outcomes.push(apply(database, command, now))
    if (realScheduler.monotonic() - start >= LONGEST_WORK_MS) break
  }
  return outcomes
}

function apply(database: Database, command: Command, now: EpochMs): Outcome {
  switch (command.type) {
    case 'enqueue':
      return enqueue(database, command, now)
    case 'checkpoint':
      return checkpoint(database, command, now)
    case 'settle':
      return settle(database, command, now)
    case 'cancel':
      return cancel(database, command, now)
    case 'requeue':
      return requeue(database, command, now)
  }
}

function checkpoint(database: Database, command: CheckpointCommand, now: EpochMs): FencedOutcome {
  const recorded = recordFenced(database, command, now)
  if (recorded === undefined) return { type: 'claimLost' }
  return { type: 'applied', status: 'PENDING', ending: null, cancelRequested: recorded.cancelRequested }
}

function settle(database: Database, command: SettleCommand, now: EpochMs): FencedOutcome {
  const run = findRun(database, command.runId)
  if (run === undefined) return { type: 'claimLost' }
  if (transitions.settledBy(run, command.token)) return settled(run, null)
  if (!transitions.holds(run, command.token)) return { type: 'claimLost' }
  record(database, run.seq, command.entries, now)
  const transition = transitions.settle(run, command.settlement, now)
  return settled(applyTransition(database, transition), transition.ending)
}

function settled(run: RunRecord, ending: Ending | null): FencedOutcome {
  return { type: 'applied', status: run.status, ending, cancelRequested: false }
}

function cancel(database: Database, command: CancelCommand, now: EpochMs): CancelOutcome {
  const run = findRun(database, command.runId)
  if (run === undefined) return { type: 'refused', status: null }
  if (run.operationId === command.commandId) return cancelled(run)
  const transition = transitions.cancel(run, command.commandId, now)
  if (transition === null) return { type: 'refused', status: run.status }
  return cancelled(applyTransition(database, transition))
}

/** Only a run that was asked to end, and didn't end at once, carries the request. */
function cancelled(run: RunRecord): CancelOutcome {
  return run.cancelRequested ? { type: 'requested', owner: run.owner, token: run.token } : { type: 'cancelled' }
}

function requeue(database: Database, command: RequeueCommand, now: EpochMs): RequeueOutcome {
  const run = findRun(database, command.runId)
  if (run === undefined) return { type: 'refused', status: null }
  if (run.operationId === command.commandId) return { type: 'requeued' }
  const transition = transitions.requeue(run, command.commandId, now)
  if (transition === null) return { type: 'refused', status: run.status }
  retireFailures(database, run)
  deleteEnding(database, run.seq)
  applyTransition(database, transition)
  return { type: 'requeued' }
}
