/** What happens inside an engine or client that somebody may want to log, count or trace (observe/). */
import type { EpochMs } from './clock.ts'

export type EngineEvent =
  | { readonly type: 'run.started'; readonly runId: string; readonly definition: string; readonly attempt: number }
  | { readonly type: 'run.suspended'; readonly runId: string; readonly definition: string; readonly wakeAt: EpochMs }
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
  | { readonly type: 'call.dropped'; readonly runId: string; readonly call: string; readonly site: string | undefined }
  /** A step ended after its run did: its outcome is not recorded. */
  | { readonly type: 'outcome.discarded'; readonly runId: string; readonly step: string }
  /** The store can't be reached or used; told once a period while it lasts. */
  | { readonly type: 'store.trouble'; readonly store: string; readonly doing: string; readonly error: unknown }
  | { readonly type: 'store.recovered'; readonly store: string; readonly doing: string }
  /** A round of a background service failed; told once a period while it lasts. */
  | { readonly type: 'service.failed'; readonly service: string; readonly error: unknown }
