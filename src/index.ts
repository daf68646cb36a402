/** The public surface of `perdure`, listed by hand. Stores and testing tools have entries of their own. */
export type { StartSql, StartSqlArgs, StartSqlOptions } from './api/caller-starts.ts'
export { Client, type ClientOptions } from './api/client.ts'
export type {
  ChildArgs,
  ChildOptions,
  ChildRun,
  SignalResult,
  StepArgument,
  StepEffects,
  WorkflowContext,
} from './api/context.ts'
export type { AnyDefinition, Definition, InputOf, OutputOf } from './api/definition.ts'
export { Engine } from './api/engine.ts'
export type { EngineOptions } from './api/engine-options.ts'
export type { Explanation, Reason } from './api/explanation.ts'
export type { Handle, RunResult } from './api/handle.ts'
export type { Kv, KvPage, ScanOptions } from './api/kv.ts'
export { type Queue, type QueueOptions, queue } from './api/queue.ts'
export type { QueueKnobOptions, RateLimiter } from './api/queue-knobs.ts'
export type { QueueChanges, Queues, RegisteredQueue } from './api/queues.ts'
export type { RetentionOption } from './api/retention.ts'
export type { Attempt, Run, RunDetails, StepRecord } from './api/run.ts'
export type { ListOptions, RunPage, Runs } from './api/runs.ts'
export type { Schema } from './api/schema.ts'
export type { CallerTransaction, StartArgs, StartOptions } from './api/start-options.ts'
export type { StartItem } from './api/starts.ts'
export type { BackoffOptions, StepOptions } from './api/step-options.ts'
export type { IsolationLevel, SqlTransaction, TransactionOptions } from './api/transaction.ts'
export { type Define, define, type Workflow, type WorkflowOptions, workflow } from './api/workflow.ts'
export type { Clock } from './core/clock.ts'
export type { ErrorClass } from './core/codec.ts'
export type { Duration } from './core/duration.ts'
export {
  ClaimLostError,
  ConfigurationError,
  DuplicateDefinitionError,
  DuplicateQueueError,
  EngineShutdownError,
  type ErrorCode,
  InputMismatchError,
  InvalidDurationError,
  InvalidIdError,
  MissingDriverError,
  NestedDurableCallError,
  NonDeterminismError,
  PerdureError,
  QueueDeduplicatedError,
  RunCancelledError,
  RunFailedError,
  RunNotFoundError,
  SerializationError,
  SignalKeyTakenError,
  StepTimeoutError,
  StoreClockError,
  StoreClosedError,
  StoreCorruptError,
  StoreUnavailableError,
  StoreVersionError,
  TimeoutError,
  TransactionClosedError,
  TransactionTooLongError,
  UnknownDefinitionError,
  UnknownQueueError,
  ValidationError,
} from './core/errors.ts'
export type { Logger } from './observe/log.ts'
export type { QueueStats, Store } from './store/contract.ts'
export type { FailureKind, RunStatus } from './store/records.ts'
