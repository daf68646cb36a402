/** The Client: starts, watches and ends runs, and runs none. */
/// <reference lib="esnext.disposable" preserve="true" />
import type { ErrorClass } from '../core/codec.ts'
import { StoreClosedError } from '../core/errors.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { checkOptions } from '../core/options.ts'
import { type Logger, logEvents } from '../observe/log.ts'
import { Hub } from '../runtime/hub.ts'
import type { Store } from '../store/contract.ts'
import type { StartSql, StartSqlArgs, StartSqlOptions } from './caller-starts.ts'
import { Connection } from './connection.ts'
import type { AnyDefinition, Definition, InputOf, OutputOf } from './definition.ts'
import type { Handle } from './handle.ts'
import type { Kv } from './kv.ts'
import { Operations } from './operations.ts'
import type { Queues } from './queues.ts'
import type { Runs } from './runs.ts'
import type { StartArgs, StartOptions } from './start-options.ts'
import { clientCatalogue, StartPlanner } from './start-planner.ts'
import type { Found, StartItem } from './starts.ts'
import { checkStore, codecWith, loggerOf } from './surroundings.ts'

export interface ClientOptions {
  /** The store that the engines use, opened on its own: `sqlite('app.db')`. It may be the same object in one process. */
  readonly store: Store
  /** Error classes that come back as themselves from the store, as the `cause` of a failed run. */
  readonly errors?: readonly ErrorClass[]
  /** Where warnings and errors go; what it throws is ignored. Default: to the console. */
  readonly logger?: Logger
}

/**
 * Starts runs by the name of their definition, with none of its code, and watches, ends and signals any run: for the
 * processes that only give work to others. `Client<typeof definitions>` knows names, inputs and outputs; without, inputs
 * and outputs are `unknown`.
 *
 * The store is opened by the first call that needs it. A client keeps no process alive.
 *
 * @throws ConfigurationError from the constructor, for what is wrong with the options.
 * @example
 * const client = new Client<typeof definitions>({ store: sqlite('app.db') })
 * const run = await client.start('convert', 'outro', { queue: 'media' })
 * console.log(await run.result())
 * await client.close()
 */
export class Client<const Ds extends readonly AnyDefinition[] = readonly AnyDefinition[]> {
  /** Runs, their steps and their attempts, as the store knows them; and why a run is not running. */
  readonly runs: Runs
  /** Values under keys, kept in the store. */
  readonly kv: Kv
  /** The queues of the store: their knobs, what is on them, and ways to change that at run time. */
  readonly queues: Queues
  readonly #connection: Connection
  readonly #operations: Operations
  readonly #stopLogging: () => void
  #closed: Promise<void> | undefined

  constructor(options: ClientOptions) {
    checkOptions('Client', options, ['store', 'errors', 'logger'])
    const { store } = options
    checkStore('Client', store)
    const codec = codecWith('Client', options.errors)
    const logger = loggerOf('Client', options.logger)
    const hub = Hub.of(store)
    const ids = timeOrderedIds(store.clock, hub.random)
    const connection = new Connection(hub, () => new StoreClosedError({ store: store.name }))
    const planner = new StartPlanner({ codec, ids, catalogue: clientCatalogue })
    this.#connection = connection
    this.#operations = new Operations({ connection, codec, ids, planner, worker: undefined })
    this.#stopLogging = logEvents(hub.events, logger)
    this.runs = this.#operations.runs
    this.kv = this.#operations.kv
    this.queues = this.#operations.queues
  }

  /**
   * Starts a run, durably: it is accepted when this resolves. By name it goes to the `queue` that is given, which need not be
   * known to anybody yet, else to any engine with a definition of that name. By a definition object, its schema validates
   * the input, and its queue and timeout hold, as they would in an engine.
   *
   * @throws ValidationError if the definition's schema refuses the input; SerializationError if it can't be stored.
   * @throws InputMismatchError if the `id` exists with another definition or input.
   * @throws QueueDeduplicatedError if another run has the `dedupId`, unless `dedupPolicy` says otherwise.
   * @throws InvalidIdError, InvalidDurationError, ConfigurationError for options that are not allowed.
   * @throws StoreClosedError after `close`.
   * In each case nothing is stored.
   */
  start<I, O>(definition: Definition<I, O, never>, ...args: StartArgs<NoInfer<I>>): Promise<Handle<O>>
  start<N extends Ds[number]['name']>(
    name: N,
    ...args: StartArgs<InputOf<Found<Ds, N>>>
  ): Promise<Handle<OutputOf<Found<Ds, N>>>>
  start(
    target: AnyDefinition | string,
    ...[input, options]: [input?: unknown, options?: StartOptions]
  ): Promise<Handle<unknown>> {
    return this.#operations.start(target, { input, options })
  }

  /**
   * Starts many runs in one transaction: all of them, or none if one is refused. Handles come in order; an empty list
   * starts nothing. Throws what `start` throws.
   *
   * @example
   * await client.startMany('convert', ['a', 'b'].map((file) => ({ input: file, options: { queue: 'media' } })))
   */
  startMany<I, O>(definition: Definition<I, O, never>, items: readonly StartItem<NoInfer<I>>[]): Promise<Handle<O>[]>
  startMany<N extends Ds[number]['name']>(
    name: N,
    items: readonly StartItem<InputOf<Found<Ds, N>>>[],
  ): Promise<Handle<OutputOf<Found<Ds, N>>>[]>
  startMany(target: AnyDefinition | string, items: readonly StartItem[]): Promise<Handle<unknown>[]> {
    return this.#operations.startMany(target, items)
  }

  /** See `Engine.startSql`; by name or by a definition object, as `start`. */
  startSql<I>(definition: Definition<I, unknown, never>, ...args: StartSqlArgs<NoInfer<I>>): Promise<StartSql>
  startSql<N extends Ds[number]['name']>(name: N, ...args: StartSqlArgs<InputOf<Found<Ds, N>>>): Promise<StartSql>
  startSql(
    target: AnyDefinition | string,
    ...[input, options]: [input?: unknown, options?: StartSqlOptions]
  ): Promise<StartSql> {
    return this.#operations.startSql(target, { input, options })
  }

  /** The handle of a run by its id, typed by its definition (or the name of it), or as the caller says; nothing is looked up. */
  handle<O>(definition: Definition<never, O, never>, id: string): Handle<O>
  handle<N extends Ds[number]['name']>(name: N, id: string): Handle<OutputOf<Found<Ds, N>>>
  handle<T = unknown>(id: string): Handle<T>
  handle(target: AnyDefinition | string, id?: string): Handle<unknown> {
    return this.#operations.handle(target, id)
  }

  /** See `Handle.cancel`. */
  cancel(id: string): Promise<boolean> {
    return this.#operations.cancel(id)
  }

  /** See `Engine.requeue`. */
  requeue(id: string): Promise<boolean> {
    return this.#operations.requeue(id)
  }

  /** See `Engine.sendSignal`. */
  sendSignal(key: string, payload?: unknown): Promise<'delivered' | 'buffered' | 'replaced'> {
    return this.#operations.sendSignal(key, payload)
  }

  /**
   * Lets go of the store, and closes it unless others in this process use it. Starts and other changes that are under way
   * are finished; calls made later are refused with StoreClosedError, and so is who still awaits a result, as nobody is left
   * to tell it. Idempotent.
   */
  close(): Promise<void> {
    this.#closed ??= this.#connection.close().finally(this.#stopLogging)
    return this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
