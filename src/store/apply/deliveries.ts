/** Commands of the run that is being worked on, all of them under the fence. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type {
  CheckpointCommand,
  ExpireCommand,
  FencedOutcome,
  PerformCommand,
  PerformOutcome,
  SettleCommand,
  Settlement,
  WaitCommand,
  WaitOutcome,
} from '../commands.ts'
import type { Ending, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Effected, Recording } from './effects.ts'
import { perform as act, recordAll, startIdOf } from './effects.ts'
import { rippleOn } from './ripples.ts'
import type { RecordedEntry, Rows, SignalWait } from './rows.ts'

const CLAIM_LOST = { type: 'claimLost' } as const
const NO_EFFECTS: Effected = { rippled: false, refusals: [] }

/** A history has no gaps, and to pass over an entry that says something new would be to lose it in silence. */
export function checkEntries(rows: Rows, { runId, token, entries }: Recording): void {
  if (entries.length === 0 || held(rows, runId, token) === undefined) return
  let next = rows.nextEntry(runId)
  for (const entry of entries) {
    const { seq } = entry
    invariant(seq <= next, `run ${runId}: entry ${seq} would leave a gap in its history, which ends before ${next}`)
    next = Math.max(next, seq + 1)
    const recorded = rows.recorded(runId, seq)
    const same = recorded === undefined || (recorded.value === entry.value && sameCall(recorded, entry))
    invariant(same, `run ${runId}: entry ${seq} was recorded before, as another one`)
  }
}

/** Its value is the store's to give. */
export function checkPerformed(rows: Rows, { runId, token, entry }: PerformCommand): void {
  const recorded = held(rows, runId, token) === undefined ? undefined : rows.recorded(runId, entry.seq)
  const value = recorded?.value ?? null
  invariant(recorded === undefined || value !== null, `run ${runId}: entry ${entry.seq} was recorded without a value`)
  checkEntries(rows, { runId, token, entries: [{ ...entry, value }] })
}

function sameCall(recorded: RecordedEntry, entry: RecordedEntry): boolean {
  return recorded.position === entry.position && recorded.verb === entry.verb && recorded.name === entry.name
}

export function checkpoint(rows: Rows, command: CheckpointCommand, now: EpochMs): FencedOutcome {
  const run = held(rows, command.runId, command.token)
  if (run === undefined) return CLAIM_LOST
  return applied(run, null, recordAll(rows, command, now))
}

export function settle(rows: Rows, command: SettleCommand, now: EpochMs): FencedOutcome {
  const run = rows.runs.get(command.runId)
  if (run === undefined) return CLAIM_LOST
  if (transitions.settledBy(run, command.token)) return applied(run, null, NO_EFFECTS)
  if (!transitions.holds(run, command.token)) return CLAIM_LOST
  const { rippled, refusals } = recordAll(rows, command, now)
  const ready = isReady(rows, run.id, command.settlement)
  const transition = transitions.settle(run, command.settlement, now, ready)
  const settled = rows.apply(transition)
  if (settled.status === 'WAITING' && command.settlement.type === 'suspend') {
    rows.waits.awaitRuns(run.id, command.settlement.children)
  }
  const ended = rippleOn(rows, settled, now)
  return applied(settled, transition.ending, { rippled: rippled || ended, refusals })
}

/** True if what a run is suspended for is there already. */
function isReady(rows: Rows, runId: string, settlement: Settlement): boolean {
  if (settlement.type !== 'suspend') return false
  if (rows.waits.hasSignalled(runId)) return true
  return settlement.children.some((child) => {
    const awaited = rows.runs.get(child.runId)
    return awaited === undefined || isTerminal(awaited.status)
  })
}

function applied(run: RunRecord, ending: Ending | null, { rippled, refusals }: Effected): FencedOutcome {
  return {
    type: 'applied',
    status: run.status,
    ending,
    cancelRequested: run.status === 'PENDING' && run.cancelRequested,
    dueAt: run.status === 'WAITING' ? run.dueAt : null,
    rippled,
    refusals,
  }
}

export function perform(rows: Rows, command: PerformCommand, now: EpochMs): PerformOutcome {
  const { runId, token, entry, action } = command
  const run = held(rows, runId, token)
  if (run === undefined) return CLAIM_LOST
  const recorded = rows.recorded(runId, entry.seq)
  if (recorded !== undefined) return performed(run, recorded.value)
  const done = act(rows, action, startIdOf(token, entry), now)
  if (done.type === 'refused') return done
  recordAll(rows, { runId, token, entries: [{ ...entry, value: done.value }] }, now)
  return performed(run, done.value)
}

function performed(run: RunRecord, value: string | null): PerformOutcome {
  invariant(value !== null, `run ${run.id}: an action was recorded without its value`)
  return { type: 'performed', value, cancelRequested: run.cancelRequested }
}

export function wait(rows: Rows, command: WaitCommand, now: EpochMs): WaitOutcome {
  const { runId, token, position, key } = command
  if (held(rows, runId, token) === undefined) return CLAIM_LOST
  const found = rows.waits.at(runId, position)
  const holder = found === undefined ? rows.waits.holderOf(key) : undefined
  if (holder !== undefined && holder !== runId) return { type: 'taken', holder }
  recordAll(rows, command, now)
  return waitOutcome(found ?? rows.waits.open(runId, position, key))
}

export function expire(rows: Rows, { runId, token, position }: ExpireCommand): WaitOutcome {
  if (held(rows, runId, token) === undefined) return CLAIM_LOST
  const found = rows.waits.at(runId, position)
  // The outcome of one that is there no more was recorded: nothing can come of it.
  if (found === undefined) return { type: 'expired' }
  return waitOutcome(found.state === 'open' ? rows.waits.expire(found) : found)
}

function waitOutcome({ state, payload }: SignalWait): WaitOutcome {
  if (state === 'open') return { type: 'waiting' }
  if (state === 'expired') return { type: 'expired' }
  invariant(payload !== null, 'a wait was resolved without a payload')
  return { type: 'signalled', payload }
}

function held(rows: Rows, runId: string, token: string): RunRecord | undefined {
  const run = rows.runs.get(runId)
  return run !== undefined && transitions.holds(run, token) ? run : undefined
}
