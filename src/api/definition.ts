/**
 * Definitions as users and the type system see them. What the runtime needs of one is kept in a private table, so that
 * a definition shows nothing but its name and kind.
 */

import type { Logger } from '../observe/log.ts'
import type { Pass } from '../runtime/replay/pass.ts'
import type { NewRun } from '../store/commands.ts'
import type { DefinitionKind, Retention } from '../store/records.ts'
import type { StartOptions } from './start-options.ts'

declare const brand: unique symbol

/**
 * A registered function whose runs are durable. Made by `workflow`; given to an Engine, which runs it, and to
 * `engine.start`, which infers input and output from it.
 *
 * `State` is what its functions find in `ctx.state`: an Engine must have at least that.
 */
export interface Definition<
  in I,
  out O,
  in State,
  out Name extends string = string,
  out Kind extends DefinitionKind = DefinitionKind,
> {
  readonly name: Name
  readonly kind: Kind
  /** For the type system only. */
  readonly [brand]?: { readonly output: O; accept(input: I): void; need(state: State): void }
}

export type AnyDefinition = Definition<never, unknown, never>

/** What `start` takes for a definition: the input type of its schema, or of its function's parameter. */
export type InputOf<D> = D extends Definition<infer I, unknown, never> ? I : never
/** What `result()` gives for a definition: the output type of its schema, or what its function resolves to. */
export type OutputOf<D> = D extends Definition<never, infer O, never> ? O : never
export type StateOf<Ds extends readonly unknown[]> = Ds[number] extends Definition<never, unknown, infer S> ? S : never
export type Named<Ds extends readonly AnyDefinition[], N> = Extract<Ds[number], { readonly name: N }>

/** What the engine knows of a definition. */
export interface Behaviour {
  readonly maxRecoveries: number
  readonly timeoutMs: number | null
  /** Where its runs go if their start doesn't say; null: they run at once, on the internal queue. */
  readonly queue: string | null
  readonly retention: Retention | null
  /** What the body gets for an input, if there is a schema; rejects with ValidationError if that refuses it. */
  readonly parseInput: ((input: unknown) => Promise<unknown>) | undefined
  body(host: BodyHost, input: unknown): Promise<unknown>
}

/** What a body's context is made of. */
export interface BodyHost {
  readonly pass: Pass
  readonly state: unknown
  readonly logger: Logger
  readonly starter: Starter
}

/** How a body starts other runs. */
export interface Starter {
  /**
   * What a start is stored as, checked like any start; `placing` says what the options leave open. Rejects with what
   * `engine.start` would throw.
   */
  prepare(start: RequestedStart, placing: Placing): Promise<NewRun>
}
export interface RequestedStart {
  readonly target: AnyDefinition | string
  readonly input: unknown
  readonly options: StartOptions | undefined
}
export interface Placing {
  /** The run's id, if the options give none. */
  readonly id: string
  /** The run that it is cancelled together with. */
  readonly parentId: string | null
}

const behaviours = new WeakMap<AnyDefinition, Behaviour>()

export function defineBehaviour<D extends AnyDefinition>(definition: D, behaviour: Behaviour): D {
  behaviours.set(definition, behaviour)
  return Object.freeze(definition)
}

/** undefined if the object was not made by this package's `workflow`. */
export function behaviourOf(definition: AnyDefinition): Behaviour | undefined {
  return behaviours.get(definition)
}
