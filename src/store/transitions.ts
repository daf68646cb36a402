/**
 * The life of a run as pure functions, shared by every store: given the row (read under its lock), the command and
 * the instant, what the row becomes. docs/reference/states.md draws the same machine.
 *
 * A store applies a transition under the fence; it decides nothing by itself.
 */
import type { EpochMs } from '../core/clock.ts'
import type { NewDue, NewRun, Settlement } from './commands.ts'
import type { ClaimableDefinition } from './contract.ts'
import type { AttemptOutcome, AttemptRecord, Ending, Failure, QueueKnobs, RunRecord } from './records.ts'
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

/** The knobs of a queue that its runs have columns for. */
export type QueueOfRun = Pick<QueueKnobs, 'partitioned' | 'priorityEnabled'>

/**
 * What a run derives from its queue as that is now; `queue`: null if it is the internal one, or not registered. A run
 * without a key that was begun before its queue became partitioned goes on, in lane ''; others are never begun there.
 */
export function placeInQueue(
  run: Pick<RunRecord, 'priority' | 'partitionKey' | 'deliveries'>,
  queue: QueueOfRun | null,
): Pick<RunRecord, 'lane' | 'rank'> {
  const keyless = run.deliveries > 0 ? '' : null
  return {
    lane: queue?.partitioned === true ? (run.partitionKey ?? keyless) : '',
    rank: queue?.priorityEnabled === true ? run.priority : 0,
  }
}

function dueInstant(due: NewDue | null, now: EpochMs): EpochMs | null {
  if (due === null) return null
  const instant = due.type === 'at' ? due.instant : now + due.ms
  return instant > now ? instant : null
}

/**
 * The row of a run that is accepted: ENQUEUED, DELAYED, or claimed at once if it is a direct start. The store gives
 * `seq`. `queue` as for `placeInQueue`.
 */
export function accept(
  start: NewRun,
  { seq, startId, queue }: { readonly seq: number; readonly startId: string; readonly queue: QueueOfRun | null },
  now: EpochMs,
): RunRecord {
  const dueAt = dueInstant(start.due, now)
  const { lane, rank } = placeInQueue(
    { priority: start.priority, partitionKey: start.partitionKey, deliveries: 0 },
    queue,
  )
  // Written out: a literal that spreads so many fields is many times slower, and every later use of the object with it.
  const run: RunRecord = {
    seq,
    id: start.id,
    definition: start.definition,
    kind: start.kind,
    queue: start.queue,
    priority: start.priority,
    partitionKey: start.partitionKey,
    lane,
    rank,
    dedupId: start.dedup?.id ?? null,
    status: dueAt === null ? 'ENQUEUED' : 'DELAYED',
    inputHash: start.inputHash,
    dueAt,
    token: null,
    owner: null,
    leaseUntil: null,
    epoch: 0,
    version: null,
    parentId: start.parentId,
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

/** A DELAYED run that is due becomes claimable, at its place. */
export function promote(run: RunRecord): Transition {
  return change(run, { status: 'ENQUEUED', dueAt: null })
}

export interface Claimant {
  readonly token: string
  readonly owner: string
  readonly leaseMs: number
  readonly version: string | null
}

/** `definition`: what the claimant knows of the run's definition, for a run that was started by its name. */
export function claim(run: RunRecord, by: Claimant, now: EpochMs, definition?: ClaimableDefinition): Transition {
  const resume = run.status === 'WAITING'
  const unresolved = run.kind === null && definition !== undefined
  const timeoutMs = unresolved ? (run.timeoutMs ?? definition.timeoutMs) : run.timeoutMs
  const firstOfEpoch = run.deadlineAt === null && timeoutMs !== null
  return change(run, {
    status: 'PENDING',
    kind: unresolved ? definition.kind : run.kind,
    maxRecoveries: unresolved ? definition.maxRecoveries : run.maxRecoveries,
    timeoutMs,
    dueAt: null,
    token: by.token,
    owner: by.owner,
    leaseUntil: now + by.leaseMs,
    version: run.version ?? by.version,
    deliveries: run.deliveries + 1,
    attempt: resume ? run.attempt : run.attempt + 1,
    deadlineAt: firstOfEpoch ? now + timeoutMs : run.deadlineAt,
    startedAt: resume ? run.startedAt : now,
  })
}

/** True if claiming the run is a start, which the rate limit of its queue counts; a resume is none. */
export function isStart(run: RunRecord): boolean {
  return run.status === 'ENQUEUED'
}

/**
 * The caller has checked the fence. A requested cancellation outweighs whatever the settlement says. `ready`: what a
 * suspended run waits for is there already (a signal for one of its waits, the end of one of the children).
 */
export function settle(run: RunRecord, settlement: Settlement, now: EpochMs, ready = false): Transition {
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
        dueAt: ready ? now : earliest(settlement.wakeAt, run.deadlineAt),
        leaseUntil: null,
      })
    case 'release': {
      const handedBack = { status: 'ENQUEUED', leaseUntil: null, startedAt: null, attempt: run.attempt - 1 } as const
      return change(run, handedBack, [pastAttempt(run, 'interrupted', now)])
    }
  }
}

/** A suspended run is due at once: a signal came, or a child has ended. null: it is not suspended, or due already. */
export function wake(run: RunRecord, now: EpochMs): Transition | null {
  if (run.status !== 'WAITING' || (run.dueAt !== null && run.dueAt <= now)) return null
  return change(run, { dueAt: now })
}

/** True if the end of the run cancels its attached children, which have not ended, with it. */
export function takesChildrenAlong({ status }: RunRecord): boolean {
  return status === 'CANCELLED'
}

/** `commandId`: null if the run is cancelled together with its parent. null: nothing to cancel, as the run has ended or has been asked before. */
export function cancel(run: RunRecord, commandId: string | null, now: EpochMs): Transition | null {
  if (isTerminal(run.status) || run.cancelRequested) return null
  const asked: RunRecord = { ...run, operationId: commandId ?? run.operationId }
  if (run.status === 'PENDING') return change(asked, { cancelRequested: true })
  return end(asked, { status: 'CANCELLED', failure: CANCELLED }, now)
}

/**
 * null: only runs that ended ERROR, DEAD or CANCELLED can be requeued. The caller has checked that no other run holds
 * the deduplication id.
 */
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

function earliest(a: EpochMs | null, b: EpochMs | null): EpochMs | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
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
