/** Stores what a transition made of a run, with all that follows from it in the same transaction. */

import { number } from '../columns.ts'
import type { RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import type { Transition } from '../transitions.ts'
import * as transitions from '../transitions.ts'
import { appendAttempts } from './attempts.ts'
import { addStart, isLaned, openLane, removeStart, updateResume } from './lanes.ts'
import { insertEnding, RUN_COLUMNS, runAt, toRun, updateClaimed, updateRun, updateSettled } from './runs.ts'
import type { Transaction } from './transaction.ts'
import { deleteWaits, findAwaiting, forgetAwaited } from './waits.ts'

/** `before` is the row as it was read in this transaction. */
export function applyTransition(transaction: Transaction, before: RunRecord, transition: Transition): RunRecord {
  const { run } = transition
  store(transaction, before, transition)
  if (!isTerminal(run.status)) return run
  const ended = [run]
  // Grows while it is walked: children that end with their parent take their own along.
  for (const one of ended) ended.push(...followEnd(transaction, one))
  return run
}

function store(transaction: Transaction, before: RunRecord, { run, ending, attempts }: Transition): void {
  const { database } = transaction
  if (run.status === 'PENDING' && before.status !== 'PENDING') updateClaimed(database, run)
  else if (ending !== null && before.status === 'PENDING' && run.token !== null) updateSettled(database, run, ending)
  else {
    updateRun(database, run)
    if (ending !== null) insertEnding(database, run.seq, ending)
  }
  if (attempts.length > 0) appendAttempts(database, run.seq, attempts)
  if (before.status === 'WAITING' && run.status === 'PENDING') forgetAwaited(database, run.seq)
  followInLane(transaction, before, run)
}

/** The claim itself sees to the lanes that it starts runs of (claim/turns.ts). */
function followInLane(transaction: Transaction, before: RunRecord, run: RunRecord): void {
  const { database } = transaction
  if (isLaned(transaction, run)) {
    if (run.status === 'ENQUEUED' && before.status !== 'ENQUEUED') addStart(database, run)
    if (run.status === 'WAITING') updateResume(database, run)
  }
  if (!isLaned(transaction, before)) return
  if (before.status === 'ENQUEUED' && isTerminal(run.status)) removeStart(database, before)
  if (before.status === 'WAITING' && run.status !== 'WAITING') updateResume(database, before)
  const letsGo = run.status !== 'PENDING' && (before.status === 'PENDING' || isTerminal(run.status))
  if (letsGo) openLane(database, before)
}

/** Most runs wait for nothing, and nothing waits for them. */
export const LOOSE_ENDS = `
select exists (select 1 from perdure_waits where run = ?),
  exists (select 1 from perdure_waits indexed by perdure_waits_runs where type = 'child' and key = ?)`
export const CHILDREN = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_children
where parent_id = ? and ended_at is null order by seq`

/** Wakes whoever waits for a run that has ended, and cancels its children. Answers those that have ended with it. */
function followEnd(transaction: Transaction, run: RunRecord): readonly RunRecord[] {
  const { database, now } = transaction
  const [waits, awaiting] = database.prepare(LOOSE_ENDS).get(run.seq, run.id) ?? []
  if (number(waits) !== 0) deleteWaits(database, run.seq)
  if (number(awaiting) !== 0) for (const seq of findAwaiting(database, run.id)) wake(transaction, runAt(database, seq))
  if (!transitions.takesChildrenAlong(run)) return []
  const ended: RunRecord[] = []
  for (const child of database.prepare(CHILDREN).all(run.id).map(toRun)) {
    const transition = transitions.cancel(child, null, now)
    if (transition === null) continue
    store(transaction, child, transition)
    transaction.ripples += 1
    if (isTerminal(transition.run.status)) ended.push(transition.run)
  }
  return ended
}

/** A suspended run is due at once, if it wasn't. */
export function wake(transaction: Transaction, run: RunRecord): void {
  const transition = transitions.wake(run, transaction.now)
  if (transition === null) return
  store(transaction, run, transition)
  transaction.ripples += 1
}
