/** How the end of a pass settles its run. */
import type { Codec } from '../core/codec.ts'
import { PerdureError, RunCancelledError, SerializationError } from '../core/errors.ts'
import type { Settlement } from '../store/contract.ts'
import type { Failure, FailureKind } from '../store/records.ts'
import type { PassEnd } from './replay/pass.ts'
import { encodeError } from './thrown.ts'

/** Why a pass was aborted, where that decides how its run goes on. */
export type AbortReason =
  | { readonly type: 'cancelled' }
  | { readonly type: 'timeout' }
  | { readonly type: 'shutdown' }
  | { readonly type: 'claimLost' }

/** `refused`: the body was not run, as its input can't be decoded, or its schema takes it no more. */
export type DeliveryEnd = PassEnd | { readonly type: 'refused'; readonly error: unknown }

/** undefined: nothing may be written; the claim is lost, or left to its lease. */
export function settlementOf(
  end: DeliveryEnd,
  abort: AbortReason['type'] | undefined,
  codec: Codec,
): Settlement | undefined {
  switch (end.type) {
    case 'returned':
      return succeedOrFail(end.value, codec)
    case 'threw':
      return { type: 'fail', failure: failureOf('error', end.error, codec) }
    case 'refused':
      return { type: 'dead', failure: failureOf('permanent', end.error, codec) }
    case 'suspended':
      return { type: 'suspend', wakeAt: end.wakeAt, children: end.children }
    case 'diverged':
      return { type: 'dead', failure: failureOf('nondeterminism', end.error, codec) }
    case 'failed':
      return isTrouble(end.error) ? undefined : { type: 'dead', failure: failureOf('serialization', end.error, codec) }
    case 'aborted':
      return abort === undefined ? undefined : settlementOfAbort(abort)
  }
}

/**
 * Trouble with the store is no outcome. A record that the database itself refuses, or one that can't be read back, would
 * fare the same after the step had run again.
 */
function isTrouble(error: unknown): boolean {
  return PerdureError.is(error) && !SerializationError.is(error)
}

export function failureOf(kind: FailureKind, error: unknown, codec: Codec): Failure {
  return { kind, error: encodeError(codec, error) }
}

function settlementOfAbort(abort: AbortReason['type']): Settlement | undefined {
  switch (abort) {
    case 'cancelled':
      return { type: 'cancel', failure: { kind: 'cancelled', error: null } }
    case 'timeout':
      return { type: 'cancel', failure: { kind: 'timeout', error: null } }
    case 'shutdown':
      return { type: 'release' }
    case 'claimLost':
      return undefined
  }
}

function succeedOrFail(value: unknown, codec: Codec): Settlement {
  try {
    return { type: 'succeed', output: codec.encode(value) }
  } catch (error) {
    return { type: 'fail', failure: failureOf('serialization', error, codec) }
  }
}

/** The error that a step's signal is aborted with. */
export function abortError(runId: string, abort: AbortReason['type'], lost: Error): Error {
  return abort === 'cancelled' || abort === 'timeout' ? new RunCancelledError({ runId, reason: abort }) : lost
}
