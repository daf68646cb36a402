/** What a store keeps, as plain data. Every store reads and writes exactly these shapes. */
import type { EpochMs } from '../core/clock.ts'
import type { EncodedValue } from '../core/codec.ts'
import type { FailureKind } from '../core/errors.ts'

/**
 * ENQUEUED: claimable. DELAYED: claimable once due. PENDING: claimed, under a lease. WAITING: suspended until
 * a timer, a signal or a child. SUCCESS, ERROR (the function's own verdict), CANCELLED and DEAD (dead-lettered)
 * are terminal.
 */
export type RunStatus = 'ENQUEUED' | 'DELAYED' | 'PENDING' | 'WAITING' | TerminalStatus
export type TerminalStatus = 'SUCCESS' | 'ERROR' | 'CANCELLED' | 'DEAD'

export const RUN_STATUSES: readonly RunStatus[] = [
  'ENQUEUED',
  'DELAYED',
  'PENDING',
  'WAITING',
  'SUCCESS',
  'ERROR',
  'CANCELLED',
  'DEAD',
]

export function isTerminal(status: RunStatus): status is TerminalStatus {
  return status === 'SUCCESS' || status === 'ERROR' || status === 'CANCELLED' || status === 'DEAD'
}

export type { EncodedValue, FailureKind }

export interface Failure {
  readonly kind: FailureKind
  /** The encoded error; null where the kind says it all (cancelled, crashed, a run's timeout). */
  readonly error: EncodedValue | null
}

export type DefinitionKind = 'workflow' | 'job' | 'stepRunner'

/** How a run came to an end. */
export type Ending =
  | { readonly status: 'SUCCESS'; readonly output: EncodedValue }
  | { readonly status: 'ERROR' | 'DEAD' | 'CANCELLED'; readonly failure: Failure }

/** The hot row of a run; its input and its ending are kept apart. */
export interface RunRecord {
  /** Total order of acceptance; the place of the run in its queue. */
  readonly seq: number
  readonly id: string
  readonly definition: string
  /** null: started by name alone, and not claimed yet. */
  readonly kind: DefinitionKind | null
  /** null: the internal queue, which every engine with the definition serves. Never '': a queue has a name. */
  readonly queue: string | null
  /** As it was asked for. Lower goes first, where the queue heeds it. */
  readonly priority: number
  readonly partitionKey: string | null
  /**
   * The part of its queue that the run belongs to: every limit and the order count per lane. The partition key on
   * a partitioned queue (without one null: never dispatched, or '' if it had begun before), '' elsewhere. Derived from the queue as it is now.
   */
  readonly lane: string | null
  /** The place that comes before `seq`: the priority on a queue that heeds it, else 0. Derived like `lane`. */
  readonly rank: number
  /** Held in the queue by this run until it ends. */
  readonly dedupId: string | null
  readonly status: RunStatus
  readonly inputHash: string
  /** When a DELAYED or WAITING run becomes claimable by time alone; null: not by time. */
  readonly dueAt: EpochMs | null
  /** The token of the last claim: that of the live one while PENDING; null before the first and once reclaimed. */
  readonly token: string | null
  /** The owner (process incarnation) of the last claim. */
  readonly owner: string | null
  readonly leaseUntil: EpochMs | null
  /** 0, and one more for each requeue of the ended run. */
  readonly epoch: number
  /** That of the first engine with a version that claimed it: no other version may go on with it. null: none. */
  readonly version: string | null
  /** Cancelled together with this run; null: none, or it was started detached. */
  readonly parentId: string | null
  /** Claims so far, of every sort: a delivery of number 1 has no history to read. */
  readonly deliveries: number
  /** Attempts of this epoch, counted at the claim; neither resumes nor deliveries that were handed back count. */
  readonly attempt: number
  /** Claims of this epoch that ended with the death of their process or the loss of their lease. */
  readonly crashes: number
  /** More crashes than this dead-letter the run. */
  readonly maxRecoveries: number
  readonly timeoutMs: number | null
  /** Set from `timeoutMs` at the first claim of an epoch. */
  readonly deadlineAt: EpochMs | null
  readonly cancelRequested: boolean
  readonly createdAt: EpochMs
  /** When the current attempt was claimed; null between attempts. */
  readonly startedAt: EpochMs | null
  readonly endedAt: EpochMs | null
  readonly failureKind: FailureKind | null
  /** The client's id of the command that started the run, so that a resend recognises itself. */
  readonly startId: string
  /** The client's id of the last cancel or requeue that was applied, for the same reason. */
  readonly operationId: string | null
}

/**
 * One entry of a run's history, in the order they were recorded (`seq`, from 0, without gaps).
 *
 * - `outcome`: a durable call's recorded outcome, an error if `failed`.
 * - `timer`: a sleep was begun; `value` is its wake instant as a decimal number.
 * - `order`: with a `verb`, the arrival of a call that did not follow from the event before it, as an await that is not
 *   durable preceded it; without, nothing but a confirmation of counts (see `delivered`).
 *
 * Outcomes and arrivals are the events of a run: their order is the order in which every pass lets them happen.
 */
export interface CheckpointRecord {
  readonly seq: number
  readonly type: 'outcome' | 'timer' | 'order'
  /** The position of the durable call; -1 for `order`. */
  readonly position: number
  /** The durable call: 'step', 'sleep', 'now', ...; '' for `order`. */
  readonly verb: string
  readonly name: string
  readonly failed: boolean
  readonly value: EncodedValue | null
  /** Durable calls made when this was recorded: a lower bound of those made before its delivery. */
  readonly calls: number
  /** How many events had been delivered when this was recorded, or are next, so that exact counts are known of them. */
  readonly delivered: number
  /** JSON text of what else a replay wants to know of the order of calls (runtime/replay/history.ts), or null. */
  readonly notes: string | null
  readonly recordedAt: EpochMs
  /** Attempts that a step took; 1 elsewhere. */
  readonly attempts: number
}

export type AttemptOutcome =
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'dead'
  | 'crashed'
  | 'interrupted'
  | 'requeued'

/** One line of a run's history of attempts. */
export interface AttemptRecord {
  readonly epoch: number
  readonly attempt: number
  readonly outcome: AttemptOutcome
  readonly owner: string | null
  readonly startedAt: EpochMs | null
  readonly endedAt: EpochMs | null
  readonly failureKind: FailureKind | null
}

/** A live process that claims runs, and how others of its host can tell that it is dead. */
export interface ProcessRecord {
  /** Executor id and incarnation: never used by two processes, nor twice by one. */
  readonly owner: string
  readonly host: string
  readonly pid: number
  /** Where known (Linux): start time of the pid, boot of the host, and the pid's namespace. */
  readonly pidStart: string | null
  readonly bootId: string | null
  readonly pidNamespace: string | null
  /** What it runs, from which queues, and as which version, for those who ask why a run doesn't run. */
  readonly definitions: readonly string[]
  readonly queues: readonly string[]
  readonly version: string | null
  readonly registeredAt: EpochMs
}

/** The knobs of a queue that hold for all processes; null: no such limit. */
export interface QueueKnobs {
  /** Of each lane: how many runs may be PENDING or WAITING (with `releaseWhileWaiting`: PENDING) at a time. */
  readonly globalConcurrency: number | null
  readonly releaseWhileWaiting: boolean
  /** Of each lane: so many starts in any window of `periodMs`. */
  readonly rateLimit: { readonly limit: number; readonly periodMs: number } | null
  readonly priorityEnabled: boolean
  readonly partitioned: boolean
  readonly retention: Retention | null
}

export interface QueueRecord extends QueueKnobs {
  readonly name: string
  /** Nothing of a paused queue is claimed. */
  readonly paused: boolean
  /** Of whoever wrote the knobs last. */
  readonly configVersion: number
  readonly updatedAt: EpochMs
}

/** How long runs are kept after their end, by how they ended, in milliseconds; null: for ever. */
export interface Retention {
  readonly success: number | null
  readonly error: number | null
  readonly dead: number | null
  readonly cancelled: number | null
}

/** Something that a run waits for, as the store knows it (timers apart). */
export type WaitRecord =
  | {
      readonly type: 'signal'
      readonly runId: string
      readonly position: number
      readonly key: string
      readonly state: 'open' | 'signalled' | 'expired'
      readonly payload: EncodedValue | null
    }
  /** Only of a suspended run. */
  | { readonly type: 'child'; readonly runId: string; readonly position: number; readonly childId: string }

export interface KvRecord {
  readonly key: string
  readonly value: EncodedValue
}
