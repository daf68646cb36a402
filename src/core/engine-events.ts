/** What happens inside an engine or client that somebody may want to log, count or trace (observe/). */
import type { EpochMs } from './clock.ts'

export type EngineEvent =
  | { readonly type: 'run.started'; readonly runId: string; readonly definition: string; readonly attempt: number }
  /** `wakeAt`: null if only a signal or the end of another run wakes it. */
  | {
      readonly type: 'run.suspended'
      readonly runId: string
      readonly definition: string
      readonly wakeAt: EpochMs | null
    }
  | { readonly type: 'run.ended'; readonly runId: string; readonly definition: string; readonly status: string }
  | { readonly type: 'run.released'; readonly runId: string; readonly definition: string }
  /** One for a batch of claims that were taken away: a dead process may have held tens of thousands. */
  | { readonly type: 'runs.reclaimed'; readonly count: number; readonly dead: number; readonly from: readonly string[] }
  /** Another holds the run now: this process stopped working on it and has written nothing since. */
  | { readonly type: 'claim.lost'; readonly runId: string; readonly definition: string }
  /** A delivery was given up with its claim kept; it is taken over when the lease ends. */
  | {
      readonly type: 'delivery.abandoned'
      readonly runId: string
      readonly definition: string
      readonly error: unknown
    }
  /** A durable call came from a pass that was over: it never settles. */
  /** A body ended without having awaited its last durable calls: nothing came of them. */
  | { readonly type: 'calls.notMade'; readonly runId: string; readonly calls: readonly string[] }
  | { readonly type: 'call.dropped'; readonly runId: string; readonly call: string; readonly site: string | undefined }
  /** A step ended after its run did: its outcome is not recorded. */
  | { readonly type: 'outcome.discarded'; readonly runId: string; readonly step: string }
  /** A follow-up that a step staged was refused when the step's outcome was recorded; the rest of it took effect. */
  | { readonly type: 'effect.refused'; readonly runId: string; readonly refusal: RefusedStart }
  /** A run was started on a partitioned queue without a partition key, and is never dispatched. */
  | { readonly type: 'start.keyless'; readonly runId: string; readonly queue: string | null }
  /** A run was started with a priority on a queue that ignores them; told once of a queue. */
  | { readonly type: 'start.priorityIgnored' | 'start.partitionKeyIgnored'; readonly queue: string | null }
  /** The knobs of a queue that this engine was given are not those that hold for all processes. */
  | { readonly type: 'queue.differs'; readonly queue: string; readonly knobs: readonly string[] }
  /** The launch of this engine gave the queue other knobs than it had, for all processes. */
  | { readonly type: 'queue.changed'; readonly queue: string; readonly knobs: readonly string[] }
  /** Runs that had ended were removed, as their retention says. */
  | { readonly type: 'runs.removed'; readonly count: number }
  /** The store can't be reached or used; told once a period while it lasts. */
  | { readonly type: 'store.trouble'; readonly store: string; readonly doing: string; readonly error: unknown }
  | { readonly type: 'store.recovered'; readonly store: string; readonly doing: string }
  /** A round of a background service failed; told once a period while it lasts. */
  | { readonly type: 'service.failed'; readonly service: string; readonly error: unknown }

/** Why a start was refused: `mismatch` with a run that has its id, or another holds its deduplication id. */
export interface RefusedStart {
  readonly type: 'mismatch' | 'deduplicated'
  /** Of the run that was to be started. */
  readonly id: string
}
