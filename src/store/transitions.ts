/**
 * The life of a run as pure functions, shared by every store: given the row (read under its lock), the command and
 * the instant, what the row becomes. docs/reference/states.md draws the same machine.
 *
 * A store applies a transition under the fence; it decides nothing by itself.
 */
import type { EpochMs } from '../core/clock.ts'
import type { NewRun, Settlement } from './contract.ts'
import type { AttemptOutcome, AttemptRecord, Ending, Failure, RunRecord } from './records.ts'
import { isTerminal } from './records.ts'

export interface Transition {
  /** The row as it becomes. */
  readonly run: RunRecord
  /** Stored as the run's ending; null: it has none (a requeue removes the one that is there). */
  readonly ending: Ending | null
  /** Appended to the run's attempts. The current attempt is not there: it is read from the row (`currentAttempt`). */
  readonly attempts: readonly AttemptRecord[]
}

const CANCELLED: Failure = { kind: 'cancelled', error: null }
const CRASHED: Failure = { kind: 'crashed', error: null }

/** The fence: true if `token` is the live claim of the run. Expiry alone takes nothing; a reclaim does. */
export function holds(run: RunRecord, token: string): boolean {
  return run.status === 'PENDING' && run.token === token
}

/** True if a settlement under `token` has been applied before and nothing has claimed the run since: a resend. */
export function settledBy(run: RunRecord, token: string): boolean {
  return run.status !== 'PENDING' && run.token === token
}

/** A lease covers the instants before its end. */
export function expired(run: RunRecord, now: EpochMs): boolean {
  return run.status === 'PENDING' && run.leaseUntil !== null && run.leaseUntil <= now
}

/** The row of a run that is accepted; ENQUEUED, or claimed at once if it is a direct start. The store gives `seq`. */
export function accept(start: NewRun, seq: number, startId: string, now: EpochMs): RunRecord {
  // Written out: a literal that spreads so many fields is many times slower, and every later use of the object with it.
  const run: RunRecord = {
    seq,
    id: start.id,
    definition: start.definition,
    kind: start.kind,
    queue: start.queue,
    status: 'ENQUEUED',
    inputHash: start.inputHash,
    dueAt: null,
    token: null,
    owner: null,
    leaseUntil: null,
    epoch: 0,
    deliveries: 0,
    attempt: 0,
    crashes: 0,
    maxRecoveries: start.maxRecoveries,
    timeoutMs: start.timeoutMs,
    deadlineAt: null,
    cancelRequested: false,
    createdAt: now,
    startedAt: null,
    endedAt: null,
    failureKind: null,
    startId,
    operationId: null,
  }
  return start.claim === null ? run : claim(run, start.claim, now).run
}

export function claim(
  run: RunRecord,
  by: { readonly token: string; readonly owner: string; readonly leaseMs: number },
  now: EpochMs,
): Transition {
  const resume = run.status === 'WAITING'
  const firstOfEpoch = run.deadlineAt === null && run.timeoutMs !== null
  return change(run, {
    status: 'PENDING',
    dueAt: null,
    token: by.token,
    owner: by.owner,
    leaseUntil: now + by.leaseMs,
    deliveries: run.deliveries + 1,
    attempt: resume ? run.attempt : run.attempt + 1,
    deadlineAt: firstOfEpoch ? now + (run.timeoutMs ?? 0) : run.deadlineAt,
    startedAt: resume ? run.startedAt : now,
  })
}

/** The caller has checked the fence. A requested cancellation outweighs whatever the settlement says. */
export function settle(run: RunRecord, settlement: Settlement, now: EpochMs): Transition {
  if (run.cancelRequested) return end(run, { status: 'CANCELLED', failure: CANCELLED }, now)
  switch (settlement.type) {
    case 'succeed':
      return end(run, { status: 'SUCCESS', output: settlement.output }, now)
    case 'fail':
      return end(run, { status: 'ERROR', failure: settlement.failure }, now)
    case 'dead':
      return end(run, { status: 'DEAD', failure: settlement.failure }, now)
    case 'cancel':
      return end(run, { status: 'CANCELLED', failure: settlement.failure }, now)
    case 'suspend':
      return change(run, {
        status: 'WAITING',
        dueAt: Math.min(settlement.wakeAt, run.deadlineAt ?? settlement.wakeAt),
        leaseUntil: null,
      })
    case 'release': {
      const handedBack = { status: 'ENQUEUED', leaseUntil: null, startedAt: null, attempt: run.attempt - 1 } as const
      return change(run, handedBack, [pastAttempt(run, 'interrupted', now)])
    }
  }
}

/** null: nothing to cancel, as the run has ended or has been asked before. */
export function cancel(run: RunRecord, commandId: string, now: EpochMs): Transition | null {
  if (isTerminal(run.status) || run.cancelRequested) return null
  const asked: RunRecord = { ...run, operationId: commandId }
  if (run.status === 'PENDING') return change(asked, { cancelRequested: true })
  return end(asked, { status: 'CANCELLED', failure: CANCELLED }, now)
}

/** null: only runs that ended ERROR, DEAD or CANCELLED can be requeued. */
export function requeue(run: RunRecord, commandId: string, now: EpochMs): Transition | null {
  if (!isTerminal(run.status) || run.status === 'SUCCESS') return null
  const ended = currentAttempt(run)
  const marker = pastAttempt(run, 'requeued', now)
  const fresh = {
    status: 'ENQUEUED',
    operationId: commandId,
    token: null,
    owner: null,
    epoch: run.epoch + 1,
    attempt: 0,
    crashes: 0,
    deadlineAt: null,
    cancelRequested: false,
    startedAt: null,
    endedAt: null,
    failureKind: null,
  } as const
  return change(run, fresh, ended === null ? [marker] : [ended, marker])
}

/** Takes away the claim of a dead process, or one whose lease has ended. The caller has checked which. */
export function reclaim(run: RunRecord, now: EpochMs): Transition {
  const taken: RunRecord = { ...run, token: null, crashes: run.crashes + 1 }
  if (run.cancelRequested) return end(taken, { status: 'CANCELLED', failure: CANCELLED }, now)
  if (taken.crashes > run.maxRecoveries) return end(taken, { status: 'DEAD', failure: CRASHED }, now)
  const crashed: AttemptRecord = { ...pastAttempt(run, 'crashed', now), failureKind: 'crashed' }
  return change(taken, { status: 'ENQUEUED', leaseUntil: null, startedAt: null }, [crashed])
}

const ATTEMPT_OUTCOME = { SUCCESS: 'succeeded', ERROR: 'failed', CANCELLED: 'cancelled', DEAD: 'dead' } as const

/** The attempt that is going on or that ended the run, which the row itself tells; null between attempts. */
export function currentAttempt(run: RunRecord): AttemptRecord | null {
  if (run.startedAt === null) return null
  return {
    epoch: run.epoch,
    attempt: run.attempt,
    outcome: isTerminal(run.status) ? ATTEMPT_OUTCOME[run.status] : 'running',
    owner: run.owner,
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    failureKind: run.failureKind,
  }
}

function pastAttempt(run: RunRecord, outcome: AttemptOutcome, now: EpochMs): AttemptRecord {
  const { epoch, attempt, owner, startedAt } = run
  return { epoch, attempt, outcome, owner, startedAt, endedAt: now, failureKind: null }
}

function end(run: RunRecord, ending: Ending, now: EpochMs): Transition {
  const failureKind = ending.status === 'SUCCESS' ? null : ending.failure.kind
  return {
    run: { ...run, status: ending.status, dueAt: null, leaseUntil: null, endedAt: now, failureKind },
    ending,
    attempts: [],
  }
}

function change(run: RunRecord, columns: Partial<RunRecord>, attempts: readonly AttemptRecord[] = []): Transition {
  return { run: { ...run, ...columns }, ending: null, attempts }
}
