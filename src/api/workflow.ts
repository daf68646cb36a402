/** `workflow` and `define`: how a workflow is defined, and what is inferred from its function and schemas. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type Duration, toWholeMs } from '../core/duration.ts'
import { checkOwnName } from '../core/names.ts'
import { checkFunction, checkOptions, integerOption } from '../core/options.ts'
import type { WorkflowContext } from './context.ts'
import { type BodyHost, type Definition, defineBehaviour } from './definition.ts'
import { workflowContext } from './replayed-context.ts'
import { type RetentionOption, retentionOf } from './retention.ts'
import { checkSchema, parse, type Schema } from './schema.ts'

export interface WorkflowOptions {
  /**
   * Where its runs go if their start doesn't say: the name of a queue of the engine. Default: none; a run is run at once
   * by the engine that starts it.
   */
  readonly queue?: string
  /**
   * For the whole run, from its first claim, sleeps and crashes included; when it is over, the run is CANCELLED.
   * A start may set its own. Default: none.
   */
  readonly timeout?: Duration
  /** How often the run's process may die under it; one more time, and the run is DEAD. Default 50. */
  readonly maxRecoveries?: number
  /** How long its runs are kept after their end, on whatever queue they were. Default: as the queue says, else for ever. */
  readonly retention?: RetentionOption
}

export type Workflow<I, O, State, Name extends string> = Definition<I, O, State, Name, 'workflow'>

/** The functions that define things, with `ctx.state` of the type `State`. */
export interface Define<State> {
  /**
   * Defines a workflow: an async function of several steps that goes on after any crash where it had stopped.
   *
   * Its input is what its second parameter is annotated with, or what the `input` schema takes; its output what the
   * function resolves to, or what the `output` schema gives. Both schemas may be of any Standard Schema library: the
   * input is validated at `start` and parsed at each delivery, the output parsed when the function has returned.
   *
   * @throws InvalidIdError for a name that is empty, longer than 255 bytes, has control characters, or
   *   begins with `perdure:`.
   * @throws ConfigurationError, InvalidDurationError for options that don't exist or are out of range.
   * @example
   * const convert = workflow('convert', async (ctx, file: string) =>
   *   ctx.step('transcode', async () => `${file}.mp4`))
   */
  workflow<const N extends string, I = void, O = unknown>(
    name: N,
    fn: (ctx: WorkflowContext<State>, input: I) => Promise<O>,
  ): Workflow<I, O, State, N>
  workflow<const N extends string, S extends StandardSchemaV1, OS extends StandardSchemaV1>(
    name: N,
    options: WorkflowOptions & { readonly input: S; readonly output: OS },
    fn: (
      ctx: WorkflowContext<State>,
      input: StandardSchemaV1.InferOutput<S>,
    ) => Promise<StandardSchemaV1.InferInput<OS>>,
  ): Workflow<StandardSchemaV1.InferInput<S>, StandardSchemaV1.InferOutput<OS>, State, N>
  workflow<const N extends string, S extends StandardSchemaV1, O>(
    name: N,
    options: WorkflowOptions & { readonly input: S; readonly output?: undefined },
    fn: (ctx: WorkflowContext<State>, input: StandardSchemaV1.InferOutput<S>) => Promise<O>,
  ): Workflow<StandardSchemaV1.InferInput<S>, O, State, N>
  workflow<const N extends string, OS extends StandardSchemaV1, I = void>(
    name: N,
    options: WorkflowOptions & { readonly input?: undefined; readonly output: OS },
    fn: (ctx: WorkflowContext<State>, input: I) => Promise<StandardSchemaV1.InferInput<OS>>,
  ): Workflow<I, StandardSchemaV1.InferOutput<OS>, State, N>
  workflow<const N extends string, I = void, O = unknown>(
    name: N,
    options: WorkflowOptions & { readonly input?: undefined; readonly output?: undefined },
    fn: (ctx: WorkflowContext<State>, input: I) => Promise<O>,
  ): Workflow<I, O, State, N>
}

/** A crash more than this dead-letters a run whose definition doesn't say otherwise, or is not known yet. */
export const DEFAULT_MAX_RECOVERIES = 50

type Options = WorkflowOptions & { readonly input?: Schema | undefined; readonly output?: Schema | undefined }
type Body<State> = (ctx: WorkflowContext<State>, input: unknown) => Promise<unknown>

/**
 * The same functions with `ctx.state` typed: `define<{ mailer: Mailer }>()`. An Engine that is given such definitions
 * must be given that state.
 *
 * @example
 * const app = define<{ mailer: Mailer }>()
 * const greet = app.workflow('greet', async (ctx, to: string) =>
 *   ctx.step('send', () => ctx.state.mailer.send({ to })))
 */
export function define<State>(): Define<State> {
  // The overloads say how the types of options and function hang together; defineWorkflow checks what they can't.
  return { workflow: defineWorkflow as Define<State>['workflow'] }
}

export const workflow: Define<unknown>['workflow'] = define<unknown>().workflow

function defineWorkflow(name: string, ...rest: [Body<unknown>] | [Options, Body<unknown>]): unknown {
  checkOwnName('workflow name', name)
  const [options, fn] = rest.length === 1 ? [{}, rest[0]] : rest
  const what = `workflow '${name}'`
  checkFunction(`${what}, its function`, fn)
  checkOptions(what, options, ['input', 'output', 'queue', 'timeout', 'maxRecoveries', 'retention'])
  const { input, output, queue, timeout, maxRecoveries = DEFAULT_MAX_RECOVERIES, retention } = options
  if (input !== undefined) checkSchema(`${what}.input`, input)
  if (output !== undefined) checkSchema(`${what}.output`, output)
  if (queue !== undefined) checkOwnName(`queue of ${what}`, queue)
  const definition: Definition<unknown, unknown, unknown> = { name, kind: 'workflow' }
  return defineBehaviour(definition, {
    queue: queue ?? null,
    timeoutMs: timeout === undefined ? null : toWholeMs(timeout, `${what}.timeout`),
    maxRecoveries: integerOption(`${what}.maxRecoveries`, maxRecoveries, 0),
    retention: retention === undefined ? null : retentionOf(`${what}.retention`, retention),
    parseInput: input === undefined ? undefined : (value) => parse(input, value, `input of ${what}`),
    body: async (host: BodyHost, value: unknown) => {
      const returned = await fn(workflowContext(host, host.state), value)
      return output === undefined ? returned : parse(output, returned, `output of ${what}`)
    },
  })
}
