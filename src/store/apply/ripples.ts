/** What the end of a run and a signal do to other runs, in the same transaction. */
import type { EpochMs } from '../../core/clock.ts'
import type { SignalOutcome } from '../commands.ts'
import type { EncodedValue, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Rows } from './rows.ts'

/** After any transition of a run: if it has ended, wakes who waits for it and cancels whom it takes along. True if so. */
export function rippleOn(rows: Rows, run: RunRecord, now: EpochMs): boolean {
  let rippled = false
  const ended = isTerminal(run.status) ? [run] : []
  for (let one = ended.pop(); one !== undefined; one = ended.pop()) {
    for (const parentId of rows.waits.awaiting(one.id)) if (wake(rows, parentId, now)) rippled = true
    if (!transitions.takesChildrenAlong(one)) continue
    for (const child of rows.runs.childrenOf(one.id)) {
      const transition = transitions.cancel(child, null, now)
      if (transition === null) continue
      rippled = true
      const cancelled = rows.apply(transition)
      if (isTerminal(cancelled.status)) ended.push(cancelled)
    }
  }
  return rippled
}

export function signal(rows: Rows, key: string, payload: EncodedValue, now: EpochMs): SignalOutcome {
  const runId = rows.waits.deliver(key, payload)
  if (runId === undefined) return { type: rows.waits.buffer(key, payload) ? 'replaced' : 'buffered' }
  wake(rows, runId, now)
  return { type: 'delivered', runId, woken: rows.runs.at(runId).status === 'WAITING' }
}

/** False if the run is not suspended, or due already. */
function wake(rows: Rows, runId: string, now: EpochMs): boolean {
  const transition = transitions.wake(rows.runs.at(runId), now)
  if (transition === null) return false
  rows.apply(transition)
  return true
}
