/** What the end of a run and a signal do to other runs, in the same transaction. */
import type { EpochMs } from '../../core/clock.ts'
import type { SignalOutcome } from '../commands.ts'
import type { EncodedValue, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Tables } from './tables.ts'

/** After any transition of a run: if it has ended, wakes who waits for it and cancels whom it takes along. True if so. */
export function rippleOn(tables: Tables, run: RunRecord, now: EpochMs): boolean {
  let rippled = false
  const ended = isTerminal(run.status) ? [run] : []
  for (let one = ended.pop(); one !== undefined; one = ended.pop()) {
    for (const parentId of tables.waits.awaiting(one.id)) if (wake(tables, parentId, now)) rippled = true
    if (!transitions.takesChildrenAlong(one)) continue
    for (const child of tables.runs.childrenOf(one.id)) {
      const transition = transitions.cancel(child, null, now)
      if (transition === null) continue
      rippled = true
      const cancelled = tables.apply(transition)
      if (isTerminal(cancelled.status)) ended.push(cancelled)
    }
  }
  return rippled
}

export function signal(tables: Tables, key: string, payload: EncodedValue, now: EpochMs): SignalOutcome {
  const runId = tables.waits.deliver(key, payload)
  if (runId === undefined) return { type: tables.waits.buffer(key, payload) ? 'replaced' : 'buffered' }
  wake(tables, runId, now)
  return { type: 'delivered', runId, woken: tables.runs.at(runId).status === 'WAITING' }
}

/** False if the run is not suspended, or due already. */
function wake(tables: Tables, runId: string, now: EpochMs): boolean {
  const transition = transitions.wake(tables.runs.at(runId), now)
  if (transition === null) return false
  tables.apply(transition)
  return true
}
