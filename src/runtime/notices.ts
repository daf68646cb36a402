/** What those who share a store object in one process tell each other, so that nobody has to poll for it. */
import type { EpochMs } from '../core/clock.ts'
import type { Ending } from '../store/records.ts'

export type Notice =
  /** A run may be claimable now. */
  | { readonly type: 'claimable' }
  /** A run becomes claimable at an instant. */
  | { readonly type: 'due'; readonly dueAt: EpochMs }
  | { readonly type: 'ended'; readonly runId: string; readonly ending: Ending }
  /** A signal has come for a run that waits for it; null: for which isn't known. */
  | { readonly type: 'signalled'; readonly runId: string | null }
  /** The holder of this token has been asked to cancel its run. */
  | { readonly type: 'cancelRequested'; readonly token: string }
  /** Runs were changed that nobody can name: by another process, or along with another run. */
  | { readonly type: 'changed' }
