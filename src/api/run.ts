/** Runs, their recorded calls and their attempts, as people see them. */
import type {
  AttemptOutcome,
  AttemptRecord,
  DefinitionKind,
  FailureKind,
  RunRecord,
  RunStatus,
} from '../store/records.ts'

/** A run as it is now. */
export interface Run {
  readonly id: string
  readonly definition: string
  /** undefined: it was started by its name alone, and nobody with its definition has claimed it yet. */
  readonly kind: DefinitionKind | undefined
  readonly status: RunStatus
  /** undefined: it is on none, and any engine with its definition runs it. */
  readonly queue: string | undefined
  /** As it was asked for, whether or not the queue heeds it. */
  readonly priority: number
  readonly partitionKey: string | undefined
  /** Held in the queue by this run until it ends. */
  readonly dedupId: string | undefined
  /** The version of the code that it belongs to, if one with a version began it. */
  readonly version: string | undefined
  /** The run that is cancelled together with this one: that of the body which started it, unless detached. */
  readonly parentId: string | undefined
  /** Attempts since it was started or last requeued; resumes after a sleep and hand-backs don't count. */
  readonly attempt: number
  /** How often its process died, or lost its lease, under it; set back by a requeue. */
  readonly crashes: number
  /** How often it has been requeued. */
  readonly epoch: number
  /** The executor that holds it or held it last. */
  readonly executor: string | undefined
  readonly cancelRequested: boolean
  readonly createdAt: Date
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  /** Of a DELAYED run: when it may be claimed. */
  readonly runAt: Date | undefined
  /** Of a WAITING run: when time wakes it, if nothing else does before; undefined if time never does. */
  readonly wakeAt: Date | undefined
  /** Of a run with a timeout, once it was claimed. */
  readonly deadline: Date | undefined
  readonly failureKind: FailureKind | undefined
}

export interface RunDetails extends Run {
  readonly input: unknown
  /** Of a run that ended SUCCESS. */
  readonly output?: unknown
  /** What a run that ended ERROR or DEAD failed with, as it was thrown. */
  readonly error?: unknown
}

/** A recorded durable call. */
export interface StepRecord {
  readonly position: number
  /** What was called: 'step', 'sleep', 'now', 'waitForSignal', 'sendSignal', 'start', 'result'. */
  readonly kind: string
  /** Of the step, the key, the definition or the run; empty for calls without a name. */
  readonly name: string
  readonly status: 'SUCCESS' | 'ERROR' | 'WAITING'
  readonly output?: unknown
  readonly error?: unknown
  readonly attempts: number
  /** Of a sleep, and of a wait for a signal that has a timeout. */
  readonly wakeAt?: Date | undefined
  readonly recordedAt: Date
}

export interface Attempt {
  readonly epoch: number
  readonly attempt: number
  readonly outcome: AttemptOutcome
  readonly executor: string | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  readonly failureKind: FailureKind | undefined
}

export function toRun(run: RunRecord): Run {
  return {
    id: run.id,
    definition: run.definition,
    kind: run.kind ?? undefined,
    status: run.status,
    queue: run.queue ?? undefined,
    priority: run.priority,
    partitionKey: run.partitionKey ?? undefined,
    dedupId: run.dedupId ?? undefined,
    version: run.version ?? undefined,
    parentId: run.parentId ?? undefined,
    attempt: run.attempt,
    crashes: run.crashes,
    epoch: run.epoch,
    executor: run.owner ?? undefined,
    cancelRequested: run.cancelRequested,
    createdAt: new Date(run.createdAt),
    startedAt: date(run.startedAt),
    endedAt: date(run.endedAt),
    runAt: run.status === 'DELAYED' ? date(run.dueAt) : undefined,
    wakeAt: run.status === 'WAITING' ? date(run.dueAt) : undefined,
    deadline: date(run.deadlineAt),
    failureKind: run.failureKind ?? undefined,
  }
}

export function toAttempt({ owner, startedAt, endedAt, failureKind, ...attempt }: AttemptRecord): Attempt {
  return {
    ...attempt,
    executor: owner ?? undefined,
    startedAt: date(startedAt),
    endedAt: date(endedAt),
    failureKind: failureKind ?? undefined,
  }
}

function date(instant: number | null): Date | undefined {
  return instant === null ? undefined : new Date(instant)
}
