/** Commands of the run that is being worked on, all of them under the fence. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type {
  CheckpointCommand,
  ExpireCommand,
  FencedOutcome,
  NewCheckpoint,
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
import type { Tables } from './tables.ts'
import type { SignalWait } from './waits.ts'

const CLAIM_LOST = { type: 'claimLost' } as const
const NO_EFFECTS: Effected = { rippled: false, refusals: [] }

/** A history has no gaps, and to pass over an entry that says something new would be to lose it in silence. */
export function checkEntries(tables: Tables, { runId, token, entries }: Recording): void {
  if (held(tables, runId, token) === undefined) return
  let next = tables.nextEntry(runId)
  for (const entry of entries) {
    const { seq } = entry
    invariant(seq <= next, `run ${runId}: entry ${seq} would leave a gap in its history, which ends before ${next}`)
    next = Math.max(next, seq + 1)
    const recorded = tables.recorded(runId, seq)
    const same = recorded === undefined || (recorded.value === entry.value && sameCall(recorded, entry))
    invariant(same, `run ${runId}: entry ${seq} was recorded before, as another one`)
  }
}

/** Its value is the store's to give. */
export function checkPerformed(tables: Tables, { runId, token, entry }: PerformCommand): void {
  const recorded = held(tables, runId, token) === undefined ? undefined : tables.recorded(runId, entry.seq)
  const value = recorded?.value ?? null
  invariant(recorded === undefined || value !== null, `run ${runId}: entry ${entry.seq} was recorded without a value`)
  checkEntries(tables, { runId, token, entries: [{ ...entry, value }] })
}

function sameCall(recorded: NewCheckpoint, entry: NewCheckpoint): boolean {
  return recorded.position === entry.position && recorded.verb === entry.verb && recorded.name === entry.name
}

export function checkpoint(tables: Tables, command: CheckpointCommand, now: EpochMs): FencedOutcome {
  const run = held(tables, command.runId, command.token)
  if (run === undefined) return CLAIM_LOST
  return applied(run, null, recordAll(tables, command, now))
}

export function settle(tables: Tables, command: SettleCommand, now: EpochMs): FencedOutcome {
  const run = tables.runs.get(command.runId)
  if (run === undefined) return CLAIM_LOST
  if (transitions.settledBy(run, command.token)) return applied(run, null, NO_EFFECTS)
  if (!transitions.holds(run, command.token)) return CLAIM_LOST
  const { rippled, refusals } = recordAll(tables, command, now)
  const ready = isReady(tables, run.id, command.settlement)
  const transition = transitions.settle(run, command.settlement, now, ready)
  const settled = tables.apply(transition)
  if (settled.status === 'WAITING' && command.settlement.type === 'suspend') {
    tables.waits.awaitRuns(run.id, command.settlement.children)
  }
  const ended = rippleOn(tables, settled, now)
  return applied(settled, transition.ending, { rippled: rippled || ended, refusals })
}

/** True if what a run is suspended for is there already. */
function isReady(tables: Tables, runId: string, settlement: Settlement): boolean {
  if (settlement.type !== 'suspend') return false
  if (tables.waits.hasSignalled(runId)) return true
  return settlement.children.some((child) => {
    const awaited = tables.runs.get(child.runId)
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

export function perform(tables: Tables, command: PerformCommand, now: EpochMs): PerformOutcome {
  const { runId, token, entry, action } = command
  const run = held(tables, runId, token)
  if (run === undefined) return CLAIM_LOST
  const recorded = tables.recorded(runId, entry.seq)
  if (recorded !== undefined) return performed(run, recorded.value)
  const done = act(tables, action, startIdOf(token, entry), now)
  if (done.type === 'refused') return done
  recordAll(tables, { runId, token, entries: [{ ...entry, value: done.value }] }, now)
  return performed(run, done.value)
}

function performed(run: RunRecord, value: string | null): PerformOutcome {
  invariant(value !== null, `run ${run.id}: an action was recorded without its value`)
  return { type: 'performed', value, cancelRequested: run.cancelRequested }
}

export function wait(tables: Tables, command: WaitCommand, now: EpochMs): WaitOutcome {
  const { runId, token, position, key } = command
  if (held(tables, runId, token) === undefined) return CLAIM_LOST
  const found = tables.waits.at(runId, position)
  const holder = found === undefined ? tables.waits.holderOf(key) : undefined
  if (holder !== undefined && holder !== runId) return { type: 'taken', holder }
  recordAll(tables, command, now)
  return waitOutcome(found ?? tables.waits.open(runId, position, key))
}

export function expire(tables: Tables, { runId, token, position }: ExpireCommand): WaitOutcome {
  if (held(tables, runId, token) === undefined) return CLAIM_LOST
  const found = tables.waits.at(runId, position)
  // The outcome of one that is there no more was recorded: nothing can come of it.
  if (found === undefined) return { type: 'expired' }
  return waitOutcome(found.state === 'open' ? tables.waits.expire(found) : found)
}

function waitOutcome({ state, payload }: SignalWait): WaitOutcome {
  if (state === 'open') return { type: 'waiting' }
  if (state === 'expired') return { type: 'expired' }
  invariant(payload !== null, 'a wait was resolved without a payload')
  return { type: 'signalled', payload }
}

function held(tables: Tables, runId: string, token: string): RunRecord | undefined {
  const run = tables.runs.get(runId)
  return run !== undefined && transitions.holds(run, token) ? run : undefined
}
