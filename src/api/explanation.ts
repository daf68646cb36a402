/** What `runs.explain` answers: why a run is where it is, as data and as text. */
import type { FailureKind, RunStatus, TerminalStatus } from '../store/records.ts'
import type { Attempt } from './run.ts'

/** Why a run is not running now, or not any more. */
export type Reason =
  | {
      readonly type: 'ended'
      readonly status: TerminalStatus
      readonly failureKind: FailureKind | undefined
      readonly endedAt: Date
      /** Oldest first. */
      readonly attempts: readonly Attempt[]
    }
  /** `lost`: its process is dead, or its lease has ended, so that others take it over within seconds. */
  | { readonly type: 'running'; readonly executor: string; readonly leaseUntil: Date; readonly lost: boolean }
  /** It runs, and was asked to end. */
  | { readonly type: 'cancelRequested' }
  | { readonly type: 'delayed'; readonly until: Date }
  /** `timeout`: then the run's timeout is over; before that nothing wakes it by time. */
  | { readonly type: 'waitingForTime'; readonly until: Date; readonly timeout: boolean }
  | { readonly type: 'waitingForSignal'; readonly key: string }
  /** `status`: of the child; undefined if there is no such run. */
  | { readonly type: 'waitingForChild'; readonly childId: string; readonly status: RunStatus | undefined }
  | { readonly type: 'queuePaused'; readonly queue: string }
  | { readonly type: 'queueUnregistered'; readonly queue: string }
  /** On a partitioned queue without a partition key: it is never run there. */
  | { readonly type: 'noPartitionKey'; readonly queue: string }
  /** No live process has its definition. */
  | { readonly type: 'noProcess'; readonly definition: string }
  /** No live process that has its definition takes runs from its queue. */
  | { readonly type: 'notListened'; readonly queue: string; readonly executors: readonly string[] }
  /** It belongs to a version of which no live process is; `versions`: those that there are. */
  | { readonly type: 'otherVersion'; readonly version: string; readonly versions: readonly string[] }
  | {
      readonly type: 'globalConcurrency'
      readonly queue: string
      readonly partitionKey: string | undefined
      readonly limit: number
      readonly active: number
      /** Runs that hold the places: some of them, if there are many. */
      readonly holders: readonly string[]
      /** Those that wait for this very run, or for one that does: as long as they hold their places, nothing moves. */
      readonly deadlocked: readonly string[]
    }
  | {
      readonly type: 'rateLimit'
      readonly queue: string
      readonly partitionKey: string | undefined
      readonly opensAt: Date
    }
  /** So many go first (1,000 stands for more). */
  | { readonly type: 'ahead'; readonly count: number }
  /** Nothing known is in its way: a process takes it at any moment, as soon as it has room. */
  | { readonly type: 'due' }

export interface ExplanationParts {
  readonly runId: string
  readonly definition: string
  readonly queue: string | undefined
  readonly status: RunStatus
  readonly reasons: readonly Reason[]
}

/** Prints as lines for people: `console.log(String(await engine.runs.explain(id)))`. */
export class Explanation implements ExplanationParts {
  readonly runId: string
  readonly definition: string
  readonly queue: string | undefined
  readonly status: RunStatus
  /** All that hold at this moment; none is left out because another holds too. */
  readonly reasons: readonly Reason[]

  constructor({ runId, definition, queue, status, reasons }: ExplanationParts) {
    this.runId = runId
    this.definition = definition
    this.queue = queue
    this.status = status
    this.reasons = reasons
  }

  toString(): string {
    const place = this.queue === undefined ? '' : ` on queue '${this.queue}'`
    const head = `Run ${this.runId} of '${this.definition}'${place} is ${this.status}.`
    return [head, ...this.reasons.flatMap(linesOf).map((line) => `- ${line}`)].join('\n')
  }
}

function linesOf(reason: Reason): readonly string[] {
  switch (reason.type) {
    case 'ended':
      return endedLines(reason)
    case 'running':
      return [runningLine(reason)]
    case 'cancelRequested':
      return ['It was asked to cancel, and ends when its handler has ended.']
    case 'delayed':
      return [`It may not start before ${reason.until.toISOString()}.`]
    case 'waitingForTime':
      return [`${reason.timeout ? 'Its timeout is over at' : 'It is suspended until'} ${reason.until.toISOString()}.`]
    case 'waitingForSignal':
      return [`It waits for a signal of the key '${reason.key}'.`]
    case 'waitingForChild':
      return [`It waits for run ${reason.childId}, which ${statusText(reason.status)}.`]
    case 'queuePaused':
      return [`Its queue is paused; queues.resume('${reason.queue}') lets it go on.`]
    case 'queueUnregistered':
      return [`No engine with queue '${reason.queue}' has been launched on this store yet.`]
    case 'noPartitionKey':
      return [`Queue '${reason.queue}' is partitioned and the run has no partition key: it is never run there.`]
    case 'noProcess':
      return [`No live process has the definition '${reason.definition}'.`]
    case 'notListened':
      return [`No live process that has its definition (${reason.executors.join(', ')}) takes runs from its queue.`]
    case 'otherVersion':
      return [
        `It belongs to version '${reason.version}' of the code; live processes are of ${quoted(reason.versions)}.`,
      ]
    case 'globalConcurrency':
      return concurrencyLines(reason)
    case 'rateLimit':
      return [`The rate limit${ofKey(reason.partitionKey)} lets the next run start at ${reason.opensAt.toISOString()}.`]
    case 'ahead':
      return [aheadLine(reason.count)]
    case 'due':
      return ['Nothing keeps it: it starts as soon as a process that may run it has room.']
  }
}

function runningLine({ executor, leaseUntil, lost }: Reason & { type: 'running' }): string {
  return lost
    ? `It was running in ${executor}, which has died or lost it: another process takes it over within seconds.`
    : `It is running in ${executor}, under a lease until ${leaseUntil.toISOString()}, renewed while it runs.`
}

function endedLines({ status, failureKind, endedAt, attempts }: Reason & { type: 'ended' }): readonly string[] {
  const how = failureKind === undefined ? '' : ` (${failureKind})`
  const lines = attempts.map(({ epoch, attempt, outcome, failureKind: kind, endedAt: at }) => {
    const when = at === undefined ? '' : ` at ${at.toISOString()}`
    if (outcome === 'requeued') return `Requeued${when}.`
    return `Attempt ${attempt}${epoch === 0 ? '' : ` after requeue ${epoch}`}: ${outcome}${kind === undefined ? '' : ` (${kind})`}${when}.`
  })
  return [`It ended ${status}${how} at ${endedAt.toISOString()}.`, ...lines]
}

function concurrencyLines(reason: Reason & { type: 'globalConcurrency' }): readonly string[] {
  const { limit, active, holders, deadlocked, partitionKey } = reason
  const more = active > holders.length ? ' and others' : ''
  return [
    `globalConcurrency ${limit}${ofKey(partitionKey)} is used up by ${holders.join(', ')}${more}.`,
    ...deadlocked.map(
      (holder) =>
        `Run ${holder} waits for this very run and holds its place meanwhile: start the one on another queue, raise the ` +
        `limit, or let places go with releaseWhileWaiting.`,
    ),
  ]
}

function aheadLine(count: number): string {
  const many = count >= 1_000 ? 'A thousand runs or more go' : `${count} runs go`
  return `${count === 1 ? 'One run goes' : many} first.`
}

function statusText(status: RunStatus | undefined): string {
  return status === undefined ? 'does not exist' : `is ${status}`
}

function ofKey(partitionKey: string | undefined): string {
  return partitionKey === undefined ? '' : ` of partition key '${partitionKey}'`
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(', ')
}
