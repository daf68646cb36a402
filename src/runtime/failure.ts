/** What `result()` throws for a run that has ended without success, wherever it is awaited: by a handle, or by a parent. */
import type { Codec } from '../core/codec.ts'
import { RunCancelledError, RunFailedError } from '../core/errors.ts'
import type { Ending } from '../store/records.ts'
import { describeThrown } from './thrown.ts'

export type Unsuccessful = Exclude<Ending, { readonly status: 'SUCCESS' }>

export interface FailureSource {
  readonly codec: Codec
  /** Attempts that the run took; only asked where they are told. */
  readonly attempts: () => Promise<number>
}

export async function failureError(
  runId: string,
  { status, failure }: Unsuccessful,
  { codec, attempts: countAttempts }: FailureSource,
): Promise<RunFailedError | RunCancelledError> {
  const { kind, error } = failure
  if (status === 'CANCELLED') {
    return new RunCancelledError({ runId, reason: kind === 'timeout' ? 'timeout' : 'cancelled' })
  }
  const attempts = await countAttempts()
  if (error === null) return new RunFailedError({ runId, kind, attempts })
  const cause = codec.decode(error)
  return new RunFailedError({ runId, kind, attempts, reason: describeThrown(cause) }, { cause })
}
