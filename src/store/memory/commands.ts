/**
 * The commit lane: what each command does to the tables. All commands of a batch are checked before the first is
 * applied, and applying cannot fail, so a batch is applied whole or not at all.
 */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type {
  AcceptedRun,
  CancelCommand,
  CancelOutcome,
  CheckpointCommand,
  Command,
  EnqueueCommand,
  EnqueueOutcome,
  FencedOutcome,
  NewRun,
  Outcome,
  RequeueCommand,
  RequeueOutcome,
  SettleCommand,
} from '../contract.ts'
import type { Ending, NewCheckpoint, RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Tables } from './tables.ts'

export function commit(tables: Tables, commands: readonly Command[], now: EpochMs): readonly Outcome[] {
  for (const command of commands) check(tables, command)
  return commands.map((command) => apply(tables, command, now))
}

function apply(tables: Tables, command: Command, now: EpochMs): Outcome {
  switch (command.type) {
    case 'enqueue':
      return enqueue(tables, command, now)
    case 'checkpoint':
      return checkpoint(tables, command, now)
    case 'settle':
      return settle(tables, command, now)
    case 'cancel':
      return cancel(tables, command, now)
    case 'requeue':
      return requeue(tables, command, now)
  }
}

/** What a database would refuse by its constraints. */
function check(tables: Tables, command: Command): void {
  if (command.type === 'enqueue') {
    for (const run of command.runs) {
      invariant(Number.isSafeInteger(run.maxRecoveries), `run ${run.id}: maxRecoveries is no whole number`)
      invariant(run.timeoutMs === null || Number.isFinite(run.timeoutMs), `run ${run.id}: timeoutMs is no number`)
    }
  }
  if (command.type === 'checkpoint' || command.type === 'settle') {
    const run = tables.runs.get(command.runId)
    if (run === undefined || !transitions.holds(run, command.token)) return
    const history = tables.history(run.id)
    let next = history.length
    for (const entry of command.entries) {
      const { seq } = entry
      invariant(seq <= next, `run ${run.id}: entry ${seq} would leave a gap in its history, which ends before ${next}`)
      next = Math.max(next, seq + 1)
      const recorded = history[seq]
      invariant(recorded === undefined || same(recorded, entry), `entry ${seq} was recorded before, as another one`)
    }
  }
}

function same(recorded: NewCheckpoint, entry: NewCheckpoint): boolean {
  const { position, verb, name, value } = recorded
  return position === entry.position && verb === entry.verb && name === entry.name && value === entry.value
}

function enqueue(tables: Tables, command: EnqueueCommand, now: EpochMs): EnqueueOutcome {
  const asked = new Map<string, NewRun>()
  for (const run of command.runs) {
    const other = tables.runs.get(run.id) ?? asked.get(run.id) ?? run
    if (other.definition !== run.definition || other.inputHash !== run.inputHash) {
      return { type: 'mismatch', id: run.id, definition: other.definition }
    }
    asked.set(run.id, run)
  }
  const seen = new Set<string>()
  const runs = command.runs.map((run): AcceptedRun => {
    const row = tables.runs.get(run.id) ?? accept(tables, run, command.commandId, now)
    // One command may name a run twice: only the first of them creates it, in a resend too.
    const created = row.startId === command.commandId && !seen.has(run.id)
    seen.add(run.id)
    return { id: run.id, created, status: row.status }
  })
  return { type: 'accepted', runs }
}

function accept(tables: Tables, start: NewRun, startId: string, now: EpochMs): RunRecord {
  const run = transitions.accept(start, tables.runs.nextSeq(), startId, now)
  tables.inputs.set(run.id, start.input)
  tables.runs.put(run)
  return run
}

function checkpoint(tables: Tables, command: CheckpointCommand, now: EpochMs): FencedOutcome {
  const run = tables.runs.get(command.runId)
  if (run === undefined || !transitions.holds(run, command.token)) return { type: 'claimLost' }
  tables.record(run.id, command.entries, now)
  return applied(run, null)
}

function settle(tables: Tables, command: SettleCommand, now: EpochMs): FencedOutcome {
  const run = tables.runs.get(command.runId)
  if (run === undefined) return { type: 'claimLost' }
  if (transitions.settledBy(run, command.token)) return applied(run, null)
  if (!transitions.holds(run, command.token)) return { type: 'claimLost' }
  tables.record(run.id, command.entries, now)
  const transition = transitions.settle(run, command.settlement, now)
  return applied(tables.apply(transition), transition.ending)
}

function applied(run: RunRecord, ending: Ending | null): FencedOutcome {
  const cancelRequested = run.status === 'PENDING' && run.cancelRequested
  return { type: 'applied', status: run.status, ending, cancelRequested }
}

function cancel(tables: Tables, command: CancelCommand, now: EpochMs): CancelOutcome {
  const run = tables.runs.get(command.runId)
  if (run === undefined) return { type: 'refused', status: null }
  if (run.operationId === command.commandId) return cancelled(run)
  const transition = transitions.cancel(run, command.commandId, now)
  if (transition === null) return { type: 'refused', status: run.status }
  return cancelled(tables.apply(transition))
}

/** Only a run that was asked to end, and didn't end at once, carries the request. */
function cancelled(run: RunRecord): CancelOutcome {
  if (!run.cancelRequested) return { type: 'cancelled' }
  return { type: 'requested', owner: run.owner, token: run.token }
}

function requeue(tables: Tables, command: RequeueCommand, now: EpochMs): RequeueOutcome {
  const run = tables.runs.get(command.runId)
  if (run === undefined) return { type: 'refused', status: null }
  if (run.operationId === command.commandId) return { type: 'requeued' }
  const transition = transitions.requeue(run, command.commandId, now)
  if (transition === null) return { type: 'refused', status: run.status }
  tables.apply(transition)
  tables.forgetFailures(run.id)
  return { type: 'requeued' }
}
