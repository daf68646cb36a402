/** The public surface of `perdure`, listed by hand. Stores and testing tools have entries of their own. */
export type { WorkflowContext } from './api/context.ts'
export type { AnyDefinition, Definition, InputOf, OutputOf } from './api/definition.ts'
export { Engine, type StartArgs } from './api/engine.ts'
export type { EngineOptions } from './api/engine-options.ts'
export type { Handle, RunResult } from './api/handle.ts'
export type { Attempt, ListOptions, Run, RunDetails, RunPage, Runs, StepRecord } from './api/runs.ts'
export type { Schema } from './api/schema.ts'
export type { StartOptions } from './api/start-options.ts'
export type { BackoffOptions, StepOptions } from './api/step-options.ts'
export { type Define, define, type Workflow, type WorkflowOptions, workflow } from './api/workflow.ts'
export type { Clock } from './core/clock.ts'
export type { ErrorClass } from './core/codec.ts'
export type { Duration } from './core/duration.ts'
export {
  ClaimLostError,
  ConfigurationError,
  DuplicateDefinitionError,
  EngineShutdownError,
  type ErrorCode,
  InputMismatchError,
  InvalidDurationError,
  InvalidIdError,
  MissingDriverError,
  NestedDurableCallError,
  NonDeterminismError,
  PerdureError,
  RunCancelledError,
  RunFailedError,
  RunNotFoundError,
  SerializationError,
  StepTimeoutError,
  StoreClockError,
  StoreClosedError,
  StoreCorruptError,
  StoreUnavailableError,
  StoreVersionError,
  TimeoutError,
  UnknownDefinitionError,
  ValidationError,
} from './core/errors.ts'
export type { Logger } from './observe/log.ts'
export type { StepArgument } from './runtime/replay/step.ts'
export type { Store } from './store/contract.ts'
export type { FailureKind, RunStatus } from './store/records.ts'
