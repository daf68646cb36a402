/**
 * The errors of the library. Each has a stable `code`, a message with the way out, and what it knows as own fields
 * (`runId`, `path`, ...). Codes, messages and meanings are in core/error-table.ts and docs/errors.md.
 *
 * `instanceof` holds within one copy of the package; `PerdureError.is(error)` and `RunFailedError.is(error)`
 * go by `code` and so hold across copies.
 */
import { ERROR_TABLE, type ErrorCode, type ErrorFields, type FailureKind, type ValidationIssue } from './error-table.ts'
import { PerdureError } from './perdure-error.ts'

export type { ErrorCode, FailureKind, ValidationIssue } from './error-table.ts'
export { isErrorCode } from './error-table.ts'
export { PerdureError } from './perdure-error.ts'

type Fields<Code extends ErrorCode> = ErrorFields[Code]

/** An option is missing, unknown, or not what it may be. */
export class ConfigurationError extends PerdureError<'CONFIGURATION'> implements Fields<'CONFIGURATION'> {
  static override readonly code = 'CONFIGURATION'
  declare readonly option: string
  declare readonly problem: string
  declare readonly allowed?: string

  constructor(details: Fields<'CONFIGURATION'>, options?: ErrorOptions) {
    super('CONFIGURATION', details, options)
  }
}

/** A duration is neither a sensible number of milliseconds nor a string that `ms` reads. */
export class InvalidDurationError extends PerdureError<'INVALID_DURATION'> implements Fields<'INVALID_DURATION'> {
  static override readonly code = 'INVALID_DURATION'
  declare readonly option: string
  declare readonly value: unknown

  constructor(details: Fields<'INVALID_DURATION'>, options?: ErrorOptions) {
    super('INVALID_DURATION', details, options)
  }
}

/** A name, id or key has a form that is refused. */
export class InvalidIdError extends PerdureError<'INVALID_ID'> implements Fields<'INVALID_ID'> {
  static override readonly code = 'INVALID_ID'
  declare readonly what: string
  declare readonly id: unknown
  declare readonly problem: string

  constructor(details: Fields<'INVALID_ID'>, options?: ErrorOptions) {
    super('INVALID_ID', details, options)
  }
}

/** A value does not fit its definition's schema. */
export class ValidationError extends PerdureError<'VALIDATION'> implements Fields<'VALIDATION'> {
  static override readonly code = 'VALIDATION'
  declare readonly what: string
  declare readonly issues: readonly ValidationIssue[]

  constructor(details: Fields<'VALIDATION'>, options?: ErrorOptions) {
    super('VALIDATION', details, options)
  }
}

/** No definition of that name is registered. */
export class UnknownDefinitionError extends PerdureError<'UNKNOWN_DEFINITION'> implements Fields<'UNKNOWN_DEFINITION'> {
  static override readonly code = 'UNKNOWN_DEFINITION'
  declare readonly definition: string
  declare readonly known: readonly string[]

  constructor(details: { readonly name: string; readonly known: readonly string[] }, options?: ErrorOptions) {
    super('UNKNOWN_DEFINITION', { definition: details.name, known: details.known }, options)
  }
}

/** Two definitions have one name. */
export class DuplicateDefinitionError
  extends PerdureError<'DUPLICATE_DEFINITION'>
  implements Fields<'DUPLICATE_DEFINITION'>
{
  static override readonly code = 'DUPLICATE_DEFINITION'
  declare readonly definition: string

  constructor(details: { readonly name: string }, options?: ErrorOptions) {
    super('DUPLICATE_DEFINITION', { definition: details.name }, options)
  }
}

/** No queue of that name is registered. */
export class UnknownQueueError extends PerdureError<'UNKNOWN_QUEUE'> implements Fields<'UNKNOWN_QUEUE'> {
  static override readonly code = 'UNKNOWN_QUEUE'
  declare readonly queue: string
  declare readonly known: readonly string[]

  constructor(details: Fields<'UNKNOWN_QUEUE'>, options?: ErrorOptions) {
    super('UNKNOWN_QUEUE', details, options)
  }
}

/** Two queues have one name. */
export class DuplicateQueueError extends PerdureError<'DUPLICATE_QUEUE'> implements Fields<'DUPLICATE_QUEUE'> {
  static override readonly code = 'DUPLICATE_QUEUE'
  declare readonly queue: string

  constructor(details: Fields<'DUPLICATE_QUEUE'>, options?: ErrorOptions) {
    super('DUPLICATE_QUEUE', details, options)
  }
}

/** The id belongs to a run of another definition, or with another input. */
export class InputMismatchError extends PerdureError<'INPUT_MISMATCH'> implements Fields<'INPUT_MISMATCH'> {
  static override readonly code = 'INPUT_MISMATCH'
  declare readonly runId: string
  declare readonly definition: string
  declare readonly existingDefinition: string

  constructor(details: Fields<'INPUT_MISMATCH'>, options?: ErrorOptions) {
    super('INPUT_MISMATCH', details, options)
  }
}

/** The deduplication id is held by a run that has not ended. */
export class QueueDeduplicatedError extends PerdureError<'QUEUE_DEDUPLICATED'> implements Fields<'QUEUE_DEDUPLICATED'> {
  static override readonly code = 'QUEUE_DEDUPLICATED'
  declare readonly runId?: string
  declare readonly queue: string
  declare readonly dedupId: string
  declare readonly holder: string

  constructor(details: Fields<'QUEUE_DEDUPLICATED'>, options?: ErrorOptions) {
    super('QUEUE_DEDUPLICATED', details, options)
  }
}

/** The store has no such run. */
export class RunNotFoundError extends PerdureError<'RUN_NOT_FOUND'> implements Fields<'RUN_NOT_FOUND'> {
  static override readonly code = 'RUN_NOT_FOUND'
  declare readonly runId: string

  constructor(details: Fields<'RUN_NOT_FOUND'>, options?: ErrorOptions) {
    super('RUN_NOT_FOUND', details, options)
  }
}

/** The awaited run ended ERROR or DEAD; `cause` is the error it failed with. */
export class RunFailedError extends PerdureError<'RUN_FAILED'> implements Fields<'RUN_FAILED'> {
  static override readonly code = 'RUN_FAILED'
  declare readonly runId: string
  declare readonly kind: FailureKind
  declare readonly attempts: number
  declare readonly reason?: string

  constructor(details: Fields<'RUN_FAILED'>, options?: ErrorOptions) {
    super('RUN_FAILED', details, options)
  }
}

/** The awaited run was cancelled, by a call or by its timeout. */
export class RunCancelledError extends PerdureError<'RUN_CANCELLED'> implements Fields<'RUN_CANCELLED'> {
  static override readonly code = 'RUN_CANCELLED'
  declare readonly runId: string
  declare readonly reason: 'cancelled' | 'timeout'

  constructor(details: Fields<'RUN_CANCELLED'>, options?: ErrorOptions) {
    super('RUN_CANCELLED', details, options)
  }
}

/** `result({ timeout })` waited long enough; the run itself goes on. */
export class TimeoutError extends PerdureError<'TIMEOUT'> implements Fields<'TIMEOUT'> {
  static override readonly code = 'TIMEOUT'
  declare readonly runId: string
  declare readonly timeoutMs: number

  constructor(details: Fields<'TIMEOUT'>, options?: ErrorOptions) {
    super('TIMEOUT', details, options)
  }
}

/** An attempt of a step took longer than its timeout. */
export class StepTimeoutError extends PerdureError<'STEP_TIMEOUT'> implements Fields<'STEP_TIMEOUT'> {
  static override readonly code = 'STEP_TIMEOUT'
  declare readonly runId: string
  declare readonly step: string
  declare readonly timeoutMs: number

  constructor(details: Fields<'STEP_TIMEOUT'>, options?: ErrorOptions) {
    super('STEP_TIMEOUT', details, options)
  }
}

/** The claim was taken away; its holder can change nothing any more. */
export class ClaimLostError extends PerdureError<'CLAIM_LOST'> implements Fields<'CLAIM_LOST'> {
  static override readonly code = 'CLAIM_LOST'
  declare readonly runId: string

  constructor(details: Fields<'CLAIM_LOST'>, options?: ErrorOptions) {
    super('CLAIM_LOST', details, options)
  }
}

/** A replay made other durable calls than the recorded ones. */
export class NonDeterminismError extends PerdureError<'NON_DETERMINISM'> implements Fields<'NON_DETERMINISM'> {
  static override readonly code = 'NON_DETERMINISM'
  declare readonly runId: string
  declare readonly position: number
  declare readonly recorded: string
  declare readonly called: string
  declare readonly site: string

  constructor(details: Fields<'NON_DETERMINISM'>, options?: ErrorOptions) {
    super('NON_DETERMINISM', details, options)
  }
}

/** A durable call was made inside a step's body. */
export class NestedDurableCallError
  extends PerdureError<'NESTED_DURABLE_CALL'>
  implements Fields<'NESTED_DURABLE_CALL'>
{
  static override readonly code = 'NESTED_DURABLE_CALL'
  declare readonly runId: string
  declare readonly call: string
  declare readonly step: string
  declare readonly overlapping?: boolean

  constructor(details: Fields<'NESTED_DURABLE_CALL'>, options?: ErrorOptions) {
    super('NESTED_DURABLE_CALL', details, options)
  }
}

/** The transaction that a statement was meant for has ended. */
export class TransactionClosedError extends PerdureError<'TRANSACTION_CLOSED'> implements Fields<'TRANSACTION_CLOSED'> {
  static override readonly code = 'TRANSACTION_CLOSED'
  declare readonly runId: string
  declare readonly transaction: string

  constructor(details: Fields<'TRANSACTION_CLOSED'>, options?: ErrorOptions) {
    super('TRANSACTION_CLOSED', details, options)
  }
}

/** A transaction held the write lock of its database for too long, and was rolled back. */
export class TransactionTooLongError
  extends PerdureError<'TRANSACTION_TOO_LONG'>
  implements Fields<'TRANSACTION_TOO_LONG'>
{
  static override readonly code = 'TRANSACTION_TOO_LONG'
  declare readonly runId: string
  declare readonly transaction: string
  declare readonly boundMs: number

  constructor(details: Fields<'TRANSACTION_TOO_LONG'>, options?: ErrorOptions) {
    super('TRANSACTION_TOO_LONG', details, options)
  }
}

/** Another run waits for signals of this key. */
export class SignalKeyTakenError extends PerdureError<'SIGNAL_KEY_TAKEN'> implements Fields<'SIGNAL_KEY_TAKEN'> {
  static override readonly code = 'SIGNAL_KEY_TAKEN'
  declare readonly runId: string
  declare readonly key: string
  declare readonly holder: string

  constructor(details: Fields<'SIGNAL_KEY_TAKEN'>, options?: ErrorOptions) {
    super('SIGNAL_KEY_TAKEN', details, options)
  }
}

/** A value can't be stored, or stored text can't be read; `path` says where (`$.items[3].fn`). */
export class SerializationError extends PerdureError<'SERIALIZATION'> implements Fields<'SERIALIZATION'> {
  static override readonly code = 'SERIALIZATION'
  declare readonly path: string
  declare readonly problem: string
  declare readonly runId?: string

  constructor(details: Fields<'SERIALIZATION'>, options?: ErrorOptions) {
    super('SERIALIZATION', details, options)
  }
}

/** The store has trouble that passes: busy, or its connection lost. */
export class StoreUnavailableError extends PerdureError<'STORE_UNAVAILABLE'> implements Fields<'STORE_UNAVAILABLE'> {
  static override readonly code = 'STORE_UNAVAILABLE'
  declare readonly store: string
  declare readonly problem: string

  constructor(details: Fields<'STORE_UNAVAILABLE'>, options?: ErrorOptions) {
    super('STORE_UNAVAILABLE', details, options)
  }
}

/** The store holds what the library never writes. */
export class StoreCorruptError extends PerdureError<'STORE_CORRUPT'> implements Fields<'STORE_CORRUPT'> {
  static override readonly code = 'STORE_CORRUPT'
  declare readonly store: string
  declare readonly problem: string

  constructor(details: Fields<'STORE_CORRUPT'>, options?: ErrorOptions) {
    super('STORE_CORRUPT', details, options)
  }
}

/** The store was written by another version, and is not readable by this one. */
export class StoreVersionError extends PerdureError<'STORE_VERSION'> implements Fields<'STORE_VERSION'> {
  static override readonly code = 'STORE_VERSION'
  declare readonly store: string
  declare readonly found: number | string
  declare readonly supported: number | string

  constructor(details: Fields<'STORE_VERSION'>, options?: ErrorOptions) {
    super('STORE_VERSION', details, options)
  }
}

/** The store lives on a clock of the other kind (mock or real). */
export class StoreClockError extends PerdureError<'STORE_CLOCK'> implements Fields<'STORE_CLOCK'> {
  static override readonly code = 'STORE_CLOCK'
  declare readonly store: string
  declare readonly recorded: string
  declare readonly given: string

  constructor(details: Fields<'STORE_CLOCK'>, options?: ErrorOptions) {
    super('STORE_CLOCK', details, options)
  }
}

/** The store has been closed. */
export class StoreClosedError extends PerdureError<'STORE_CLOSED'> implements Fields<'STORE_CLOSED'> {
  static override readonly code = 'STORE_CLOSED'
  declare readonly store: string

  constructor(details: Fields<'STORE_CLOSED'>, options?: ErrorOptions) {
    super('STORE_CLOSED', details, options)
  }
}

/** The engine is shut down or shutting down. */
export class EngineShutdownError extends PerdureError<'ENGINE_SHUTDOWN'> implements Fields<'ENGINE_SHUTDOWN'> {
  static override readonly code = 'ENGINE_SHUTDOWN'

  constructor(details: Fields<'ENGINE_SHUTDOWN'>, options?: ErrorOptions) {
    super('ENGINE_SHUTDOWN', details, options)
  }
}

/** The driver of a store is an optional package that is not installed. */
export class MissingDriverError extends PerdureError<'MISSING_DRIVER'> implements Fields<'MISSING_DRIVER'> {
  static override readonly code = 'MISSING_DRIVER'
  declare readonly store: string
  declare readonly drivers: readonly string[]

  constructor(details: Fields<'MISSING_DRIVER'>, options?: ErrorOptions) {
    super('MISSING_DRIVER', details, options)
  }
}

/** Every class by its code. */
export const ERROR_CLASSES = {
  CONFIGURATION: ConfigurationError,
  INVALID_DURATION: InvalidDurationError,
  INVALID_ID: InvalidIdError,
  VALIDATION: ValidationError,
  UNKNOWN_DEFINITION: UnknownDefinitionError,
  DUPLICATE_DEFINITION: DuplicateDefinitionError,
  UNKNOWN_QUEUE: UnknownQueueError,
  DUPLICATE_QUEUE: DuplicateQueueError,
  INPUT_MISMATCH: InputMismatchError,
  QUEUE_DEDUPLICATED: QueueDeduplicatedError,
  RUN_NOT_FOUND: RunNotFoundError,
  RUN_FAILED: RunFailedError,
  RUN_CANCELLED: RunCancelledError,
  TIMEOUT: TimeoutError,
  STEP_TIMEOUT: StepTimeoutError,
  CLAIM_LOST: ClaimLostError,
  NON_DETERMINISM: NonDeterminismError,
  NESTED_DURABLE_CALL: NestedDurableCallError,
  TRANSACTION_CLOSED: TransactionClosedError,
  TRANSACTION_TOO_LONG: TransactionTooLongError,
  SIGNAL_KEY_TAKEN: SignalKeyTakenError,
  SERIALIZATION: SerializationError,
  STORE_UNAVAILABLE: StoreUnavailableError,
  STORE_CORRUPT: StoreCorruptError,
  STORE_VERSION: StoreVersionError,
  STORE_CLOCK: StoreClockError,
  STORE_CLOSED: StoreClosedError,
  ENGINE_SHUTDOWN: EngineShutdownError,
  MISSING_DRIVER: MissingDriverError,
} as const satisfies { readonly [Code in ErrorCode]: { readonly code: Code } }

// On the prototype, so that a stack begins with it, and not as a field, so that inspecting an error shows it once.
for (const { code, prototype } of Object.values(ERROR_CLASSES)) {
  Object.defineProperty(prototype, 'name', { value: ERROR_TABLE[code].name, configurable: true, writable: true })
}
