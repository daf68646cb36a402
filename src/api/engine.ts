/** The Engine: starts runs, runs them, and answers for them. */
/// <reference lib="esnext.disposable" preserve="true" />
import { type Duration, toMs } from '../core/duration.ts'
import type { EngineEvent } from '../core/engine-events.ts'
import { EngineShutdownError } from '../core/errors.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { checkOptions } from '../core/options.ts'
import { logEvent, logEvents } from '../observe/log.ts'
import type { Handler } from '../runtime/handler.ts'
import { Hub } from '../runtime/hub.ts'
import { Worker } from '../runtime/worker.ts'
import type { Store } from '../store/contract.ts'
import type { StartSql, StartSqlArgs, StartSqlOptions } from './caller-starts.ts'
import { Connection } from './connection.ts'
import type { AnyDefinition, Definition, InputOf, OutputOf, Starter } from './definition.ts'
import { type CheckedEngine, checkEngine, type EngineOptions } from './engine-options.ts'
import type { Handle } from './handle.ts'
import type { Kv } from './kv.ts'
import { Operations } from './operations.ts'
import type { Queues } from './queues.ts'
import type { Runs } from './runs.ts'
import type { StartArgs, StartOptions } from './start-options.ts'
import { engineCatalogue, StartPlanner } from './start-planner.ts'
import type { Found, StartItem } from './starts.ts'

const DEFAULT_SHUTDOWN_TIMEOUT = '30s'

/**
 * Runs definitions on a store, and starts, watches and ends their runs. Before `launch` it only does the latter: what
 * it starts is stored, and run by any engine that is launched on the same store.
 *
 * @throws ConfigurationError, DuplicateDefinitionError, DuplicateQueueError, UnknownQueueError, InvalidDurationError from
 *   the constructor, for what is wrong with the options; nothing is opened before the first call that needs the store.
 * @example
 * const engine = new Engine({ store: sqlite('app.db'), definitions: [convert] })
 * await engine.launch()
 * const run = await engine.start(convert, 'intro')
 * console.log(await run.result())
 * await engine.shutdown()
 */
export class Engine<const Ds extends readonly AnyDefinition[] = readonly AnyDefinition[]> {
  /** As it was given. `await engine.store.migrate()` brings its schema up to date without opening it. */
  readonly store: Store
  /** Runs, their steps and their attempts, as the store knows them; and why a run is not running. */
  readonly runs: Runs
  /** Values under keys, kept in the store. */
  readonly kv: Kv
  /** The queues of the store: their knobs, what is on them, and ways to change that at run time. */
  readonly queues: Queues
  readonly #checked: CheckedEngine
  readonly #worker: Worker
  readonly #connection: Connection
  readonly #operations: Operations
  readonly #stopLogging: () => void
  #stopped: Promise<void> | undefined

  constructor(options: EngineOptions<Ds>) {
    this.#checked = checkEngine(options)
    const { store, codec, queues, version, executorId, maxConcurrent, maxBlockedMs, logger } = this.#checked
    this.store = store
    const hub = Hub.of(store)
    const onEvent = (event: EngineEvent): void => logEvent(logger, event)
    this.#stopLogging = logEvents(hub.events, logger)
    const ids = timeOrderedIds(store.clock, hub.random)
    const connection = new Connection(hub, () => new EngineShutdownError({}))
    const planner = new StartPlanner({ codec, ids, catalogue: engineCatalogue(this.#checked, connection) })
    this.#worker = new Worker({
      ...{ hub, codec, executorId, version, maxConcurrent, maxBlockedMs, onEvent },
      queues: [...queues.values()],
      handlers: this.#handlers(planner),
    })
    this.#connection = connection
    this.#operations = new Operations({ connection, codec, ids, planner, worker: this.#worker })
    this.runs = this.#operations.runs
    this.kv = this.#operations.kv
    this.queues = this.#operations.queues
  }

  /**
   * Opens the store and begins to work: the queues are registered, runs that are due are claimed, those of processes that
   * have died are taken over (of this host's at once, of others' when their lease has ended). Idempotent; settles in any
   * interleaving with `shutdown`.
   *
   * @throws StoreCorruptError, StoreVersionError, StoreClockError, MissingDriverError if the store can't be used;
   *   EngineShutdownError after a shutdown.
   */
  async launch(): Promise<void> {
    this.#assertRunning()
    await this.#connection.open()
    try {
      await this.#worker.launch()
    } catch (error) {
      // What a launch runs into because of the shutdown is the shutdown.
      this.#assertRunning()
      throw error
    }
  }

  /**
   * Starts a run, durably: it is accepted when this resolves, and will be run however often processes die. With a `queue`,
   * given here or by its definition, it waits there until a process that serves the queue has room. Without one, a launched
   * engine runs it here, at once, as long as there is room (`maxConcurrent`).
   *
   * An `id` that exists gives the handle of the existing run, finished or not.
   *
   * @throws UnknownDefinitionError, UnknownQueueError if the engine does not have the definition, or the queue.
   * @throws ValidationError if the definition's schema refuses the input; SerializationError if it can't be stored.
   * @throws InputMismatchError if the `id` exists with another definition or input.
   * @throws QueueDeduplicatedError if another run has the `dedupId`, unless `dedupPolicy` says otherwise.
   * @throws InvalidIdError, InvalidDurationError, ConfigurationError for options that are not allowed.
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
   * starts nothing. On SQLite the transaction holds the event loop for some 30 microseconds a run: give ten thousand at
   * a time only where they must be accepted together. Throws what `start` throws.
   *
   * @example
   * await engine.startMany(convert, ['a', 'b'].map((file) => ({ input: file, options: { queue: 'media' } })))
   */
  startMany<I, O>(definition: Definition<I, O, never>, items: readonly StartItem<NoInfer<I>>[]): Promise<Handle<O>[]>
  startMany<N extends Ds[number]['name']>(
    name: N,
    items: readonly StartItem<InputOf<Found<Ds, N>>>[],
  ): Promise<Handle<OutputOf<Found<Ds, N>>>[]>
  startMany(target: AnyDefinition | string, items: readonly StartItem[]): Promise<Handle<unknown>[]> {
    return this.#operations.startMany(target, items)
  }

  /**
   * The statement that starts a run, for you to execute in a transaction of PostgreSQL, with whatever driver you have:
   * `text` and `values`, or `strings` and `values` for drivers that tag templates. Nothing is started before. The run is
   * always enqueued, and can be awaited by its `id` once the transaction is committed. Checks what `start` checks, and
   * throws what it throws; of an id or a `dedupId` that is taken, the statement tells.
   *
   * @throws ConfigurationError if the store is not in PostgreSQL.
   * @example
   * const { strings, values, id } = await engine.startSql(convert, 'intro', { queue: 'media' })
   * await sql.begin((tx) => tx(strings, ...values)) // `postgres`; for others see docs/transactions.md
   */
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

  /**
   * Makes a run that ended ERROR, DEAD or CANCELLED claimable again, at its old place in the order. Steps that
   * succeeded before the first that failed stay and are not run again; attempts and crashes count anew; the history
   * tells. False for a run that is unknown or in any other status.
   *
   * @throws QueueDeduplicatedError if another run has taken its `dedupId`.
   */
  requeue(id: string): Promise<boolean> {
    return this.#operations.requeue(id)
  }

  /**
   * Gives a payload to every wait for the key (`ctx.waitForSignal`, all of one run): `'delivered'`. If no run waits for it,
   * it is kept for the first that will: `'buffered'`, or `'replaced'` if an earlier one was kept, which is dropped.
   *
   * @throws InvalidIdError for a key that is empty, longer than 255 bytes, or has control characters; SerializationError
   *   for a payload that can't be stored.
   */
  sendSignal(key: string, payload?: unknown): Promise<'delivered' | 'buffered' | 'replaced'> {
    return this.#operations.sendSignal(key, payload)
  }

  /**
   * Looks now for claims of dead processes and claims whose lease has ended, and makes their runs claimable. A
   * launched engine does so by itself every 5 s.
   */
  async recover(): Promise<void> {
    await this.#connection.open()
    await this.#worker.recover()
  }

  /**
   * Stops: claims nothing more, waits up to `timeout` of real time (default 30 s) for what runs, hands the rest back
   * (no attempt is spent; others claim it at once) and closes the store unless others use it. A store that does not
   * answer is waited for 10 s longer, and no more. Nothing is left then: no timer, socket or thread. Idempotent; the engine can't be launched again.
   */
  async shutdown(options: { readonly timeout?: Duration } = {}): Promise<void> {
    checkOptions('shutdown', options, ['timeout'])
    const { timeout = DEFAULT_SHUTDOWN_TIMEOUT } = options
    const timeoutMs = toMs(timeout, 'shutdown.timeout')
    this.#stopped ??= this.#shutdown(timeoutMs)
    await this.#stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown()
  }

  async #shutdown(timeoutMs: number): Promise<void> {
    this.#connection.seal()
    await this.#worker.shutdown(timeoutMs)
    await this.#connection.close()
    this.#stopLogging()
  }

  #assertRunning(): void {
    if (this.#stopped !== undefined) throw new EngineShutdownError({})
  }

  #handlers(starter: Starter): ReadonlyMap<string, Handler> {
    const { behaviours, state, logger } = this.#checked
    const handlers = new Map<string, Handler>()
    for (const [name, { definition, behaviour }] of behaviours) {
      const { maxRecoveries, timeoutMs, retention, parseInput } = behaviour
      handlers.set(name, {
        ...{ name, kind: definition.kind, maxRecoveries, timeoutMs, retention, parseInput },
        body: (pass, input) => behaviour.body({ pass, state, logger, starter }, input),
      })
    }
    return handlers
  }
}
