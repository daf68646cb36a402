/** The Engine: starts runs, runs them, and answers for them. */
/// <reference lib="esnext.disposable" preserve="true" />
import { type Duration, toMs } from '../core/duration.ts'
import type { EngineEvent } from '../core/engine-events.ts'
import { EngineShutdownError } from '../core/errors.ts'
import { type Ids, timeOrderedIds } from '../core/ids.ts'
import { checkOptions } from '../core/options.ts'
import { logEvent } from '../observe/log.ts'
import type { Handler } from '../runtime/handler.ts'
import { Hub } from '../runtime/hub.ts'
import { Worker } from '../runtime/worker.ts'
import type { AnyDefinition, Definition, InputOf, Named, OutputOf } from './definition.ts'
import { type CheckedEngine, checkEngine, type EngineOptions } from './engine-options.ts'
import { type Handle, type HandleHost, RunHandle } from './handle.ts'
import { checkRunId } from './names.ts'
import { type Runs, runsOf } from './runs.ts'
import type { StartOptions } from './start-options.ts'
import { Starts } from './starts.ts'

/** A definition without input is started without one. */
export type StartArgs<I> = undefined extends I
  ? [input?: I, options?: StartOptions]
  : [input: I, options?: StartOptions]

const DEFAULT_SHUTDOWN_TIMEOUT = '30s'

/**
 * Runs definitions on a store, and starts, watches and ends their runs. Before `launch` it only does the latter: what
 * it starts is stored, and run by any engine that is launched on the same store.
 *
 * @throws ConfigurationError, DuplicateDefinitionError, InvalidDurationError from the constructor, for what is wrong
 *   with the options; nothing is opened before the first call that needs the store.
 * @example
 * const engine = new Engine({ store: sqlite('app.db'), definitions: [convert] })
 * await engine.launch()
 * const run = await engine.start(convert, 'intro')
 * console.log(await run.result())
 * await engine.shutdown()
 */
export class Engine<const Ds extends readonly AnyDefinition[] = readonly AnyDefinition[]> {
  /** Runs, their steps and their attempts, as the store knows them. */
  readonly runs: Runs
  readonly #checked: CheckedEngine
  readonly #hub: Hub
  readonly #worker: Worker
  readonly #starts: Starts
  readonly #host: HandleHost
  readonly #ids: Ids
  readonly #stopLogging: () => void
  /** Set while this engine keeps the store open by itself, launched or not. */
  #joined: Promise<Hub> | undefined
  #stopped: Promise<void> | undefined

  constructor(options: EngineOptions<Ds>) {
    this.#checked = checkEngine(options)
    const { store, codec, executorId, maxConcurrent, maxBlockedMs } = this.#checked
    this.#hub = Hub.of(store)
    const onEvent = (event: EngineEvent): void => logEvent(this.#checked.logger, event)
    this.#stopLogging = this.#hub.events.on(onEvent)
    this.#ids = timeOrderedIds(store.clock, this.#hub.random)
    this.#worker = new Worker({
      ...{ hub: this.#hub, codec, executorId, maxConcurrent, maxBlockedMs, onEvent },
      handlers: this.#handlers(),
    })
    const hub = (): Promise<Hub> => this.#join()
    this.#host = { codec, hub, cancel: (id) => this.cancel(id) }
    this.#starts = new Starts({ checked: this.#checked, hub, worker: this.#worker, ids: this.#ids })
    this.runs = runsOf(hub, codec)
  }

  /**
   * Opens the store and begins to work: runs that are due are claimed, those of processes that have died are taken
   * over (of this host's at once, of others' when their lease has ended). Idempotent; settles in any interleaving
   * with `shutdown`.
   *
   * @throws StoreCorruptError, StoreVersionError, StoreClockError, MissingDriverError if the store can't be used;
   *   EngineShutdownError after a shutdown.
   */
  async launch(): Promise<void> {
    this.#assertRunning()
    await this.#join()
    try {
      await this.#worker.launch()
    } catch (error) {
      // What a launch runs into because of the shutdown is the shutdown.
      this.#assertRunning()
      throw error
    }
  }

  /**
   * Starts a run, durably: it is accepted when this resolves, and will be run however often processes die. In a
   * launched engine it is run here, at once, as long as there is room (`maxConcurrent`).
   *
   * An `id` that exists gives the handle of the existing run, finished or not.
   *
   * @throws UnknownDefinitionError if the engine does not have the definition.
   * @throws ValidationError if the definition's schema refuses the input; SerializationError if it can't be stored.
   * @throws InputMismatchError if the `id` exists with another definition or input.
   * @throws InvalidIdError, InvalidDurationError, ConfigurationError for options that are not allowed.
   * In each case nothing is stored.
   */
  async start<I, O>(definition: Definition<I, O, never>, ...args: StartArgs<NoInfer<I>>): Promise<Handle<O>>
  async start<N extends Ds[number]['name']>(
    name: N,
    ...args: StartArgs<InputOf<Named<Ds, N>>>
  ): Promise<Handle<OutputOf<Named<Ds, N>>>>
  async start(
    target: AnyDefinition | string,
    ...[input, options]: [input?: unknown, options?: StartOptions]
  ): Promise<Handle<unknown>> {
    this.#assertRunning()
    const accepted = await this.#starts.start(target, { input, options })
    return new RunHandle(this.#host, accepted.id, accepted.created)
  }

  /**
   * Starts many runs in one transaction: all of them, or none if one is refused. Handles come in order; an empty list
   * starts nothing. On SQLite the transaction holds the event loop for some 30 microseconds a run: give ten thousand at
   * a time only where they must be accepted together. Throws what `start` throws.
   *
   * @example
   * await engine.startMany(convert, ['a', 'b'].map((file) => ({ input: file })))
   */
  async startMany<I, O>(
    definition: Definition<I, O, never>,
    items: readonly { readonly input: NoInfer<I>; readonly options?: StartOptions }[],
  ): Promise<Handle<O>[]> {
    this.#assertRunning()
    const accepted = await this.#starts.startMany(definition, items)
    return accepted.map(({ id, created }) => new RunHandle<O>(this.#host, id, created))
  }

  /** The handle of a run by its id, typed by its definition, or as the caller says; nothing is looked up. */
  handle<O>(definition: Definition<never, O, never>, id: string): Handle<O>
  handle<T = unknown>(id: string): Handle<T>
  handle(target: AnyDefinition | string, id?: string): Handle<unknown> {
    const runId = typeof target === 'string' ? target : id
    checkRunId(runId)
    return new RunHandle(this.#host, runId, false)
  }

  /** See `Handle.cancel`. */
  async cancel(id: string): Promise<boolean> {
    checkRunId(id)
    const hub = await this.#join()
    const outcome = await hub.submit({ type: 'cancel', commandId: this.#ids.next(), runId: id })
    return outcome.type !== 'refused'
  }

  /**
   * Makes a run that ended ERROR, DEAD or CANCELLED claimable again, at its old place in the order. Steps that
   * succeeded before the first that failed stay and are not run again; attempts and crashes count anew; the history
   * tells. False for a run that is unknown or in any other status.
   */
  async requeue(id: string): Promise<boolean> {
    checkRunId(id)
    const hub = await this.#join()
    const outcome = await hub.submit({ type: 'requeue', commandId: this.#ids.next(), runId: id })
    return outcome.type === 'requeued'
  }

  /**
   * Looks now for claims of dead processes and claims whose lease has ended, and makes their runs claimable. A
   * launched engine does so by itself every 5 s.
   */
  async recover(): Promise<void> {
    await this.#join()
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
    await this.#worker.shutdown(timeoutMs)
    const joined = this.#joined
    this.#joined = undefined
    if (joined !== undefined) {
      await joined.then(
        (hub) => hub.release(),
        () => {},
      )
    }
    this.#stopLogging()
  }

  #join(): Promise<Hub> {
    if (this.#stopped !== undefined && this.#joined === undefined) return Promise.reject(new EngineShutdownError({}))
    this.#joined ??= this.#hub.acquire().then(
      () => this.#hub,
      async (error: unknown) => {
        this.#joined = undefined
        await this.#hub.release()
        throw error
      },
    )
    return this.#joined
  }

  #assertRunning(): void {
    if (this.#stopped !== undefined) throw new EngineShutdownError({})
  }

  #handlers(): ReadonlyMap<string, Handler> {
    const { behaviours, state, logger } = this.#checked
    const handlers = new Map<string, Handler>()
    for (const [name, { definition, behaviour }] of behaviours) {
      handlers.set(name, {
        name,
        kind: definition.kind,
        parseInput: behaviour.parseInput,
        body: (pass, input) => behaviour.body({ pass, state, logger }, input),
      })
    }
    return handlers
  }
}
