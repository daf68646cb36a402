/** Commands for tests of what writes them; `text` is what their effect is known by. */
import type {
  CancelCommand,
  CheckpointCommand,
  EnqueueCommand,
  NewRun,
  SettleCommand,
} from '../../src/store/contract.ts'
import type { NewCheckpoint } from '../../src/store/records.ts'

export function newRun(id: string, input: string): NewRun {
  const limits = { maxRecoveries: 50, timeoutMs: null, claim: null }
  return { id, definition: 'd', kind: 'workflow', queue: null, input, inputHash: '', ...limits }
}

export function enqueue(ids: readonly string[], text: string): EnqueueCommand {
  return { type: 'enqueue', commandId: text, runs: ids.map((id, index) => newRun(id, `${text}/${index}`)) }
}

export function entry(seq: number, text: string): NewCheckpoint {
  const delivery = { calls: seq, delivered: seq, notes: null, attempts: 1 }
  return { seq, type: 'outcome', position: seq, verb: 'step', name: 's', failed: false, value: text, ...delivery }
}

export function checkpoint(runId: string, token: string, seq: number, text: string): CheckpointCommand {
  return { type: 'checkpoint', runId, token, entries: [entry(seq, text)] }
}

export function settle(runId: string, token: string, text: string): SettleCommand {
  return { type: 'settle', runId, token, entries: [], settlement: { type: 'succeed', output: text } }
}

export function cancel(runId: string, text: string): CancelCommand {
  return { type: 'cancel', commandId: text, runId }
}
