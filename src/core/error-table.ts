/**
 * Every error of the library in one table: its code, the class it belongs to, whether the same call may succeed
 * when it is simply made again, and its message. A message says what happened, to which run, and what to do.
 *
 * docs/errors.md explains each code; a test keeps the two equal. core/errors.ts has the classes.
 */

/** Why a run or an attempt failed; `cancelled` and `timeout` are also why a run was cancelled. */
export type FailureKind =
  | 'error'
  | 'transient'
  | 'permanent'
  | 'timeout'
  | 'crashed'
  | 'cancelled'
  | 'nondeterminism'
  | 'serialization'

export interface ValidationIssue {
  readonly message: string
  readonly path?: string
}

/** What each error knows; these are also the own fields of the error. */
export interface ErrorFields {
  readonly CONFIGURATION: { readonly option: string; readonly problem: string; readonly allowed?: string }
  readonly INVALID_DURATION: { readonly option: string; readonly value: unknown }
  readonly INVALID_ID: { readonly what: string; readonly id: unknown; readonly problem: string }
  readonly VALIDATION: { readonly what: string; readonly issues: readonly ValidationIssue[] }
  readonly UNKNOWN_DEFINITION: { readonly definition: string; readonly known: readonly string[] }
  readonly DUPLICATE_DEFINITION: { readonly definition: string }
  readonly UNKNOWN_QUEUE: { readonly queue: string; readonly known: readonly string[] }
  readonly DUPLICATE_QUEUE: { readonly queue: string }
  readonly INPUT_MISMATCH: {
    readonly runId: string
    readonly definition: string
    readonly existingDefinition: string
  }
  readonly QUEUE_DEDUPLICATED: {
    /** Of a run that exists and can't be requeued; a start that is refused has none. */
    readonly runId?: string
    readonly queue: string
    readonly dedupId: string
    /** The run that has the id. */
    readonly holder: string
  }
  readonly RUN_NOT_FOUND: { readonly runId: string }
  readonly RUN_FAILED: {
    readonly runId: string
    readonly kind: FailureKind
    readonly attempts: number
    readonly reason?: string
  }
  readonly RUN_CANCELLED: { readonly runId: string; readonly reason: 'cancelled' | 'timeout' }
  readonly TIMEOUT: { readonly runId: string; readonly timeoutMs: number }
  readonly STEP_TIMEOUT: { readonly runId: string; readonly step: string; readonly timeoutMs: number }
  readonly CLAIM_LOST: { readonly runId: string }
  readonly NON_DETERMINISM: {
    readonly runId: string
    readonly position: number
    /** What the record says was called here, such as `step 'charge'`, or `nothing`. */
    readonly recorded: string
    /** What this pass called, in the same words. */
    readonly called: string
    /** Where in the user's code the call was made; empty if it isn't known. */
    readonly site: string
  }
  readonly NESTED_DURABLE_CALL: {
    readonly runId: string
    readonly call: string
    /** The step or transaction. */
    readonly step: string
    /** It was called beside the transaction, not inside its body. */
    readonly overlapping?: boolean
  }
  readonly TRANSACTION_CLOSED: { readonly runId: string; readonly transaction: string }
  readonly TRANSACTION_TOO_LONG: { readonly runId: string; readonly transaction: string; readonly boundMs: number }
  readonly SIGNAL_KEY_TAKEN: { readonly runId: string; readonly key: string; readonly holder: string }
  readonly SERIALIZATION: { readonly path: string; readonly problem: string; readonly runId?: string }
  readonly STORE_UNAVAILABLE: { readonly store: string; readonly problem: string }
  readonly STORE_CORRUPT: { readonly store: string; readonly problem: string }
  readonly STORE_VERSION: {
    readonly store: string
    readonly found: number | string
    readonly supported: number | string
  }
  readonly STORE_CLOCK: { readonly store: string; readonly recorded: string; readonly given: string }
  readonly STORE_CLOSED: { readonly store: string }
  readonly ENGINE_SHUTDOWN: object
  readonly MISSING_DRIVER: { readonly store: string; readonly drivers: readonly string[] }
}

export type ErrorCode = keyof ErrorFields

interface ErrorEntry<Fields> {
  /** The class's name, which minifying can't change. */
  readonly name: string
  /** True if the same call, made again later, may succeed. */
  readonly retryable: boolean
  readonly message: (fields: Fields) => string
}

export const ERROR_TABLE: { readonly [Code in ErrorCode]: ErrorEntry<ErrorFields[Code]> } = {
  CONFIGURATION: {
    name: 'ConfigurationError',
    retryable: false,
    message: ({ option, problem, allowed }) =>
      `Option ${option}: ${problem}${problem.endsWith('?') ? '' : '.'}${allowed === undefined ? '' : ` Allowed: ${allowed}.`}`,
  },
  INVALID_DURATION: {
    name: 'InvalidDurationError',
    retryable: false,
    message: ({ option, value }) =>
      `Option ${option}: ${shown(value)} is not a duration. Allowed: a number of milliseconds that is finite and ` +
      `not negative, or a string such as '250ms', '30s', '5m', '1.5h', '7d'.`,
  },
  INVALID_ID: {
    name: 'InvalidIdError',
    retryable: false,
    message: ({ what, id, problem }) => `The ${what} ${shown(id)} can't be used: ${problem}. Give another.`,
  },
  VALIDATION: {
    name: 'ValidationError',
    retryable: false,
    message: ({ what, issues }) =>
      `The ${what} doesn't fit its schema: ${issues.map(issueText).join('; ')}. Correct the value, or the schema.`,
  },
  UNKNOWN_DEFINITION: {
    name: 'UnknownDefinitionError',
    retryable: false,
    message: ({ definition, known }) =>
      known.includes(definition)
        ? `The definition given is not the one that the engine has under the name ${shown(definition)}. Give the very ` +
          `object that is in its 'definitions' (was a module loaded twice?), or start it by its name.`
        : `No definition is named ${shown(definition)}. ` +
          `${known.length === 0 ? 'None is registered' : `Registered: ${known.join(', ')}`}. ` +
          `Add it to the 'definitions' of the engine, or correct the name.`,
  },
  DUPLICATE_DEFINITION: {
    name: 'DuplicateDefinitionError',
    retryable: false,
    message: ({ definition }) =>
      `Two definitions are named ${shown(definition)}. Names are unique across workflows, jobs and step runners: ` +
      `rename one of them.`,
  },
  UNKNOWN_QUEUE: {
    name: 'UnknownQueueError',
    retryable: false,
    message: ({ queue, known }) =>
      `No queue is named ${shown(queue)}. ${known.length === 0 ? 'None is registered' : `Registered: ${known.join(', ')}`}. ` +
      `Add queue(${shown(queue)}) to the 'queues' of the engine, or correct the name.`,
  },
  DUPLICATE_QUEUE: {
    name: 'DuplicateQueueError',
    retryable: false,
    message: ({ queue }) => `Two queues are named ${shown(queue)}. Rename one of them, or leave one out.`,
  },
  INPUT_MISMATCH: {
    name: 'InputMismatchError',
    retryable: false,
    message: ({ runId, definition, existingDefinition }) =>
      definition === existingDefinition
        ? `Run ${runId} of ${shown(definition)} exists already, with another input. One id or idempotency key ` +
          `stands for one input: use another key for another input, or leave out the id.`
        : `Run ${runId} exists already, as a run of ${shown(existingDefinition)}, not of ${shown(definition)}. ` +
          `Use another id.`,
  },
  QUEUE_DEDUPLICATED: {
    name: 'QueueDeduplicatedError',
    retryable: true,
    message: ({ runId, queue, dedupId, holder }) =>
      `Run ${holder} has the deduplication id ${shown(dedupId)} in the queue ${shown(queue)}. ` +
      (runId === undefined
        ? `Start again when it has ended, or give dedupPolicy: 'returnExisting' to get its handle.`
        : `Requeue run ${runId} when that one has ended.`),
  },
  RUN_NOT_FOUND: {
    name: 'RunNotFoundError',
    retryable: false,
    message: ({ runId }) =>
      `The store has no run ${runId}. Check the id, and that this is the store in which it was started.`,
  },
  RUN_FAILED: {
    name: 'RunFailedError',
    retryable: false,
    message: ({ runId, kind, attempts, reason }) =>
      `Run ${runId} failed (${kind}) after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}` +
      `${reason === undefined || reason === '' ? '' : `: ${reason.replace(/\.$/, '')}`}. ` +
      `The error it failed with, if there is one, is this error's cause; once that is mended, requeue the run.`,
  },
  RUN_CANCELLED: {
    name: 'RunCancelledError',
    retryable: false,
    message: ({ runId, reason }) =>
      reason === 'timeout'
        ? `Run ${runId} was cancelled because its timeout passed. Give it a longer one, and requeue it.`
        : `Run ${runId} was cancelled. Requeue it if it shall run after all.`,
  },
  TIMEOUT: {
    name: 'TimeoutError',
    retryable: true,
    message: ({ runId, timeoutMs }) =>
      `Run ${runId} did not end within ${timeoutMs} ms. The wait is over, not the run: await its result again, or ask ` +
      `runs.explain('${runId}') what it waits for.`,
  },
  STEP_TIMEOUT: {
    name: 'StepTimeoutError',
    retryable: true,
    message: ({ runId, step, timeoutMs }) =>
      `Step ${shown(step)} of run ${runId} took longer than its timeout of ${timeoutMs} ms and was aborted. Give it ` +
      `a longer 'timeout', let its body heed step.signal, or allow more attempts.`,
  },
  CLAIM_LOST: {
    name: 'ClaimLostError',
    retryable: false,
    message: ({ runId }) =>
      `The claim on run ${runId} was lost: its lease ended and another worker may hold the run. Nothing was ` +
      `written; stop working on it. If it happens often, look for what freezes the process or blocks its event loop.`,
  },
  NON_DETERMINISM: {
    name: 'NonDeterminismError',
    retryable: false,
    message: ({ runId, position, recorded, called, site }) =>
      `Run ${runId} replayed differently: at position ${position} its record has ${recorded}, this pass called ` +
      `${called}${site === '' ? '' : ` (${site})`}. Make the workflow's calls depend on its input and on recorded ` +
      `outcomes only, or restore the code that began the run; then requeue it.`,
  },
  NESTED_DURABLE_CALL: {
    name: 'NestedDurableCallError',
    retryable: false,
    message: ({ runId, call, step, overlapping }) =>
      overlapping === true
        ? `${call} was called while transaction ${shown(step)} of run ${runId} was open. A run has one transaction at a ` +
          `time: await the one before the other is called.`
        : `${call} was called inside the body of step ${shown(step)} of run ${runId}. A step is recorded as one unit: ` +
          `make the call from the workflow's body, before or after the step.`,
  },
  TRANSACTION_CLOSED: {
    name: 'TransactionClosedError',
    retryable: false,
    message: ({ runId, transaction }) =>
      `Transaction ${shown(transaction)} of run ${runId} has ended, by its body's end, an abort, or a statement of its ` +
      `own. Await every statement before the body returns, heed tx.signal, and leave begin, commit and rollback to perdure.`,
  },
  TRANSACTION_TOO_LONG: {
    name: 'TransactionTooLongError',
    retryable: true,
    message: ({ runId, transaction, boundMs }) =>
      `Transaction ${shown(transaction)} of run ${runId} held the write lock of its database for ${boundMs} ms and was ` +
      `rolled back. Do what takes long (calls of services, computations) in a step before it.`,
  },
  SIGNAL_KEY_TAKEN: {
    name: 'SignalKeyTakenError',
    retryable: true,
    message: ({ runId, key, holder }) =>
      `Run ${runId} can't wait for signals of the key ${shown(key)}, as run ${holder} does. A key belongs to one run ` +
      `at a time: make it from something that only this run has, such as its id.`,
  },
  SERIALIZATION: {
    name: 'SerializationError',
    retryable: false,
    message: ({ path, problem, runId }) =>
      `The value at ${path}${runId === undefined ? '' : ` of run ${runId}`} can't be stored or read back: ${problem}.`,
  },
  STORE_UNAVAILABLE: {
    name: 'StoreUnavailableError',
    retryable: true,
    message: ({ store, problem }) =>
      `The store ${store} can't be reached now: ${problem}. Try again later; check that the database is up, not locked ` +
      `by another program, and may be written.`,
  },
  STORE_CORRUPT: {
    name: 'StoreCorruptError',
    retryable: false,
    message: ({ store, problem }) =>
      `The store ${store} holds what perdure never writes: ${problem}. Stop its engines, keep a copy, and restore a ` +
      `backup.`,
  },
  STORE_VERSION: {
    name: 'StoreVersionError',
    retryable: false,
    message: ({ store, found, supported }) =>
      `The store ${store} has schema version ${found}, this version of perdure supports ${supported}. Use the ` +
      `version of perdure that wrote the store, or a newer one.`,
  },
  STORE_CLOCK: {
    name: 'StoreClockError',
    retryable: false,
    message: ({ store, recorded, given }) =>
      `The store ${store} was made with a ${recorded} clock and is opened with a ${given} one, so its instants would ` +
      `mean nothing. Open it with a ${recorded} clock, or use another store.`,
  },
  STORE_CLOSED: {
    name: 'StoreClosedError',
    retryable: false,
    message: ({ store }) =>
      `The store ${store} is closed. Make the call before close() or shutdown(), or open it anew.`,
  },
  ENGINE_SHUTDOWN: {
    name: 'EngineShutdownError',
    retryable: false,
    message: () =>
      'The engine is shut down, or shutting down, and takes no more calls. Make the call before shutdown(), or on ' +
      'another engine; runs that were accepted go on where the store is served.',
  },
  MISSING_DRIVER: {
    name: 'MissingDriverError',
    retryable: false,
    message: ({ store, drivers }) =>
      `The store ${store} needs a driver that is not installed. Run: npm install ${drivers.join(' (or: ')}` +
      `${')'.repeat(Math.max(0, drivers.length - 1))}.`,
  },
}

/** True if the text is one of the library's error codes. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code)
}

function issueText({ message, path }: ValidationIssue): string {
  return path === undefined || path === '' ? message : `${path}: ${message}`
}

/** A value as it may stand in a message: short, on one line, and never the cause of another error. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > 80 ? `${value.slice(0, 80)}...` : value}'`
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value)
  if (typeof value === 'bigint') return `${value}n`
  return value === undefined ? 'undefined' : `a value of type ${typeof value}`
}
