/** Commands for tests of what writes them; `text` is what their effect is known by. */
import type {
  Action,
  CancelCommand,
  CheckpointCommand,
  Effect,
  EnqueueCommand,
  ExpireCommand,
  KvCommand,
  KvPut,
  NewCheckpoint,
  NewRun,
  PerformCommand,
  SettleCommand,
  SignalCommand,
  WaitCommand,
} from '../../src/store/contract.ts'

export function newRun(id: string, input: string, differing: Partial<NewRun> = {}): NewRun {
  return {
    ...{ id, definition: 'd', kind: 'workflow', queue: null, priority: 0, partitionKey: null, dedup: null, due: null },
    ...{ input, inputHash: '', maxRecoveries: 50, timeoutMs: null, parentId: null, kv: [], claim: null },
    ...differing,
  }
}

export function enqueue(ids: readonly string[], text: string): EnqueueCommand {
  return { type: 'enqueue', commandId: text, runs: ids.map((id, index) => newRun(id, `${text}/${index}`)) }
}

export function entry(seq: number, text: string, effects: readonly Effect[] = []): NewCheckpoint {
  const delivery = { calls: seq, delivered: seq, notes: null, attempts: 1 }
  const outcome = { seq, type: 'outcome', position: seq, verb: 'step', name: 's', failed: false, value: text } as const
  return effects.length === 0 ? { ...outcome, ...delivery } : { ...outcome, ...delivery, effects }
}

export function checkpoint(
  runId: string,
  token: string,
  seq: number,
  text: string,
  effects: readonly Effect[] = [],
): CheckpointCommand {
  return { type: 'checkpoint', runId, token, entries: [entry(seq, text, effects)] }
}

export function settle(runId: string, token: string, text: string): SettleCommand {
  return { type: 'settle', runId, token, entries: [], settlement: { type: 'succeed', output: text } }
}

export function cancel(runId: string, text: string): CancelCommand {
  return { type: 'cancel', commandId: text, runId }
}

export function signal(key: string, text: string): SignalCommand {
  return { type: 'signal', commandId: text, key, payload: text }
}

export function put(key: string, text: string): KvPut {
  return { type: 'put', key, value: text, hash: '' }
}

export function kv(key: string, text: string): KvCommand {
  return { type: 'kv', commandId: text, change: put(key, text) }
}

export function perform(runId: string, token: string, seq: number, action: Action): PerformCommand {
  const { effects: _none, ...bare } = entry(seq, '')
  return { type: 'perform', runId, token, entry: { ...bare, value: null }, action }
}

/** Its effect is known by the timer that it records. */
export function wait(runId: string, token: string, seq: number, key: string, text: string): WaitCommand {
  return { type: 'wait', runId, token, position: seq, key, entries: [{ ...entry(seq, text), type: 'timer' }] }
}

export function expire(runId: string, token: string, position: number): ExpireCommand {
  return { type: 'expire', runId, token, position }
}
