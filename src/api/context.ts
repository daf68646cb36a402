/** What a workflow's body is given: its durable calls, its state, its log. */

import type { EpochMs } from '../core/clock.ts'
import { type Duration, toMs } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { checkName } from '../core/names.ts'
import { booleanOption, checkOptions } from '../core/options.ts'
import type { Logger } from '../observe/log.ts'
import { silent } from '../observe/log.ts'
import { argumentOf } from '../runtime/replay/argument.ts'
import type { Call, CallRequest } from '../runtime/replay/call.ts'
import { beginResult, beginStart, type ChildStart, startedRun } from '../runtime/replay/child.ts'
import { DerivedRandom } from '../runtime/replay/derived.ts'
import { beginNow } from '../runtime/replay/now.ts'
import type { Pass } from '../runtime/replay/pass.ts'
import { beginSendSignal } from '../runtime/replay/send-signal.ts'
import { beginWait, type SignalResult } from '../runtime/replay/signal.ts'
import { beginSleep } from '../runtime/replay/sleep.ts'
import { runStep, type StepAttempt, type StepWork } from '../runtime/replay/step.ts'
import type { AnyDefinition, BodyHost, Definition, Starter } from './definition.ts'
import type { StartArgs, StartOptions } from './start-options.ts'
import { type StepOptions, stepPolicy } from './step-options.ts'

export type { SignalResult }

/** What a step's function is given. */
export interface StepArgument extends StepAttempt {
  /** Writes that are made together with the record of the step, or not at all. */
  readonly effects: StepEffects
}

/**
 * What a step stages: it is committed by the same transaction that records the step's success, exactly once. What an
 * attempt has staged that fails, times out, or dies with its process, is forgotten. Of no use after the function of the
 * step has returned.
 *
 * Everything is checked where it is staged, and stored as it is then.
 *
 * @example
 * await ctx.step('settle', async (step) => {
 *   const total = await ledger.close(order)
 *   step.effects.put(`total:${order}`, total)
 *   await step.effects.start(sendReceipt, { order, total })
 * })
 */
export interface StepEffects {
  /**
   * Puts a value under a key of the KV space. Of several puts of one key the last counts.
   *
   * @throws InvalidIdError for a key that is not allowed; SerializationError for a value that can't be stored, undefined,
   *   or more than 1 MiB of text; ConfigurationError if the attempt also deletes the key.
   */
  put(key: string, value: unknown): void
  /** Deletes a key of the KV space, if it is there. */
  delete(key: string): void
  /**
   * Starts a run that goes its own way: what becomes of this one does not touch it. Resolves to the id that it will have,
   * the same on every attempt of the step. A run that the store refuses when the step is recorded (its `id` has another
   * input, its `dedupId` is held) is left out, and a warning logged; the step and its other effects stand.
   *
   * Await it: rejects with what `engine.start` would throw for such a definition, input or options.
   */
  start<I>(definition: Definition<I, unknown, never>, ...args: StartArgs<NoInfer<I>>): Promise<string>
  start(name: string, input?: unknown, options?: StartOptions): Promise<string>
  /** Sends a signal, as `ctx.sendSignal` does. */
  sendSignal(key: string, payload?: unknown): void
}

export interface ChildOptions extends StartOptions {
  /** True: the run is not cancelled together with this one. Default false. */
  readonly detached?: boolean
}

/** A definition without input is started without one. */
export type ChildArgs<I> = undefined extends I
  ? [input?: I, options?: ChildOptions]
  : [input: I, options?: ChildOptions]

/** A run that a body has started. */
export interface ChildRun<O> {
  readonly id: string
  /** False if the run existed already: the `id` given was known, or the `dedupId` held (with 'returnExisting'). */
  readonly newlySubmitted: boolean
  /**
   * Waits for the end of the run and resolves with its output. A durable call of the body like any other: what it comes
   * to is recorded where it is called, and it may be called more than once. While the run lasts, this one may be suspended.
   *
   * @throws RunFailedError if it ended ERROR or DEAD, with `kind`, `attempts`, and the error thrown as `cause`.
   * @throws RunCancelledError if it was cancelled, with the `reason`.
   * @throws RunNotFoundError if it is there no more.
   */
  result(): Promise<O>
}

/**
 * The context of a workflow's body. The durable calls (`step`, `sleep`, `sleepUntil`, `now`, `start`, a child's `result`,
 * `waitForSignal`, `sendSignal`) take a position where they are written, in the order of the calls, and record their
 * outcome there: a replay after a crash or a suspension walks the body again and gets the records instead of running
 * anything twice.
 *
 * A body may await these calls only, and must be deterministic between them: use `now`, `uuid` and `random` instead of
 * `Date`, `crypto` and `Math.random`. See docs/determinism.md.
 *
 * A run that has only sleeps of more than a second, signals and children to wait for is suspended: it holds no memory,
 * lease or worker slot meanwhile.
 */
export interface WorkflowContext<State> {
  /** The engine's `state` option: clients, configuration; never persisted. */
  readonly state: State
  readonly runId: string
  /** Writes to the engine's logger; silent on what a replay walks again. */
  readonly log: Logger

  /**
   * Runs a function with effects, once: its value, or its final error, is recorded and every replay gets that. The
   * function runs again only if its process dies, or its lease is lost, between the effect and the record; give
   * `step.idempotencyKey` to services that recognise repeated calls.
   *
   * The value goes through the codec: what cannot be stored is a `SerializationError`, thrown here.
   *
   * @throws what the function threw on its last attempt, with name, message, cause and own fields.
   * @throws StepTimeoutError when the last attempt took longer than `timeout`.
   * @throws NestedDurableCallError at once, when called inside another step's function.
   * @example
   * const receipt = await ctx.step('charge', { maxAttempts: 3, timeout: '10s' }, (step) =>
   *   payments.charge(order, { idempotencyKey: step.idempotencyKey, signal: step.signal }))
   */
  step<T>(name: string, fn: (step: StepArgument) => T | Promise<T>): Promise<T>
  step<T>(name: string, options: StepOptions, fn: (step: StepArgument) => T | Promise<T>): Promise<T>

  /**
   * Waits for a duration (milliseconds, or '5m'); the wake instant is recorded and kept across crashes.
   *
   * @throws InvalidDurationError for a negative, infinite or unreadable duration.
   */
  sleep(duration: Duration): Promise<void>
  /** Waits until an instant; at once if it is past. */
  sleepUntil(instant: Date): Promise<void>
  /** The current instant by the store's clock, recorded. */
  now(): Promise<Date>

  /**
   * Starts a run of another definition, once: it is there if and only if this call is recorded, and every replay gets the
   * same. Resolves when it is accepted; `result()` of what it resolves to awaits its end.
   *
   * The child's id is `<run id>~<position>`, unless the options give one; after a requeue of this run,
   * `<run id>~<epoch>.<position>`; hashed if that is longer than 128 bytes. It is cancelled together with this run, unless
   * it is `detached`; nothing else that becomes of this run touches it. Without a queue of its own, given here or by its
   * definition, any engine with the definition runs it.
   *
   * @throws what `engine.start` would throw for such a definition, input or options; recorded, so that every replay gets
   *   the same. InputMismatchError, QueueDeduplicatedError if the store refuses the start.
   * @throws NestedDurableCallError at once, when called inside a step's function: use `step.effects.start` there.
   * @example
   * const children = await Promise.all(pages.map((page) => ctx.start(fetchPage, page, { queue: 'web' })))
   * const texts = await Promise.all(children.map((child) => child.result()))
   */
  start<I, O>(definition: Definition<I, O, never>, ...args: ChildArgs<NoInfer<I>>): Promise<ChildRun<O>>
  start(name: string, input?: unknown, options?: ChildOptions): Promise<ChildRun<unknown>>

  /**
   * Waits for a signal that somebody sends to the key (`sendSignal` of an engine, a client, a workflow or a step), or until
   * `timeout` is over, counted from here and kept across crashes. A signal that was sent before is there: the newest of
   * each key is kept for the first who waits. It is taken by that wait, and given to all waits of this run that are open
   * on the key when it comes.
   *
   * `T` is what the caller says the payload is; nothing checks that.
   *
   * @throws SignalKeyTakenError if another run waits on the key: a key belongs to one run at a time.
   * @throws InvalidIdError for a key that is empty, longer than 255 bytes, or has control characters.
   * @throws NestedDurableCallError at once, when called inside a step's function.
   * @example
   * const answer = await ctx.waitForSignal<'yes' | 'no'>(`approval:${ctx.runId}`, { timeout: '3d' })
   * if (!answer.ok) return 'nobody answered'
   * if (answer.payload === 'yes') await ctx.step('ship', () => ship(order))
   */
  waitForSignal<T = unknown>(key: string, options?: { readonly timeout?: Duration }): Promise<SignalResult<T>>

  /**
   * Sends a signal, once, however often the run is replayed. Resolves to what became of it: 'delivered' to who waits for
   * it, 'buffered' for the first who will, or 'replaced', the same in place of an older one that nobody has waited for.
   *
   * @throws InvalidIdError for a key that is not allowed; SerializationError for a payload that can't be stored.
   * @throws NestedDurableCallError at once, when called inside a step's function: use `step.effects.sendSignal` there.
   */
  sendSignal(key: string, payload?: unknown): Promise<'delivered' | 'buffered' | 'replaced'>

  /** A UUID derived from the run: every replay gets the same. */
  uuid(): string
  /** A number in [0, 1) derived from the run: every replay gets the same. */
  random(): number
}

export function workflowContext<State>(host: BodyHost, state: State): WorkflowContext<State> {
  return new ReplayedContext(host, state)
}

/** Instants beyond this are no valid Date. */
const LATEST_INSTANT_MS = 8.64e15

class ReplayedContext<State> implements WorkflowContext<State> {
  readonly state: State
  readonly #pass: Pass
  readonly #logger: Logger
  readonly #prepare: Starter['prepare']
  readonly #derived: DerivedRandom

  constructor(host: BodyHost, state: State) {
    this.state = state
    this.#pass = host.pass
    this.#logger = host.logger
    this.#prepare = (start, placing) => host.starter.prepare(start, placing)
    this.#derived = new DerivedRandom(host.pass.runId, () => host.pass.lineage)
  }

  get runId(): string {
    return this.#pass.runId
  }

  get log(): Logger {
    return this.#pass.replaying ? silent : this.#logger
  }

  step<T>(
    name: string,
    ...rest:
      | [fn: (step: StepArgument) => T | Promise<T>]
      | [options: StepOptions, fn: (step: StepArgument) => T | Promise<T>]
  ): Promise<T> {
    checkName('step', name)
    const [options, body] = rest.length === 1 ? [undefined, rest[0]] : rest
    if (typeof body !== 'function') {
      throw new ConfigurationError({
        option: `step '${name}'`,
        problem: 'has no function',
        allowed: 'step(name, options?, fn)',
      })
    }
    const work: StepWork<AnyDefinition | string, StartOptions> = {
      policy: stepPolicy(name, options),
      body,
      prepare: this.#prepare,
    }
    return this.#call<T>('step', name, this.step, (pass, call) => void runStep(pass, call, work))
  }

  sleep(duration: Duration): Promise<void> {
    const ms = toMs(duration, 'ctx.sleep')
    return this.#call('sleep', '', this.sleep, (pass, call) => beginSleep(pass, call, () => instantIn(pass, ms)))
  }

  sleepUntil(instant: Date): Promise<void> {
    const wakeAt = instant instanceof Date ? instant.getTime() : Number.NaN
    if (Number.isNaN(wakeAt)) {
      throw new ConfigurationError({ option: 'ctx.sleepUntil', problem: 'is not a valid Date', allowed: 'a Date' })
    }
    return this.#call('sleep', '', this.sleepUntil, (pass, call) => beginSleep(pass, call, () => wakeAt))
  }

  now(): Promise<Date> {
    return this.#call('now', '', this.now, beginNow)
  }

  start<O>(target: AnyDefinition | string, input?: unknown, options?: ChildOptions): Promise<ChildRun<O>> {
    const definition = nameOf(target)
    checkName('definition name', definition)
    const { detached, forStart } = splitOptions(options)
    const start: ChildStart = {
      definition,
      input: argumentOf(this.#pass.codec, input),
      detached,
      prepare: (given, placing) => this.#prepare({ target, input: given, options: forStart }, placing),
    }
    const begin = (pass: Pass, call: Call): void => void beginStart(pass, call, start)
    return this.#call('start', definition, this.start, begin, (value) => new StartedChild<O>(this.#pass, value))
  }

  waitForSignal<T>(key: string, options: { readonly timeout?: Duration } = {}): Promise<SignalResult<T>> {
    checkName('signal key', key)
    checkOptions('ctx.waitForSignal', options, ['timeout'])
    const { timeout } = options
    const ms = timeout === undefined ? undefined : toMs(timeout, 'ctx.waitForSignal.timeout')
    return this.#call('waitForSignal', key, this.waitForSignal, (pass, call) => {
      void beginWait(pass, call, key, ms === undefined ? undefined : () => instantIn(pass, ms))
    })
  }

  sendSignal(key: string, payload?: unknown): Promise<'delivered' | 'buffered' | 'replaced'> {
    checkName('signal key', key)
    const argument = argumentOf(this.#pass.codec, payload)
    return this.#call('sendSignal', key, this.sendSignal, (pass, call) => {
      void beginSendSignal(pass, call, key, argument)
    })
  }

  uuid(): string {
    return this.#derived.uuid()
  }

  random(): number {
    return this.#derived.random()
  }

  /** What a call resolves to is what it recorded, decoded and presented: of the type that its verb recorded. */
  #call<T>(
    verb: string,
    name: string,
    method: CallRequest['method'],
    begin: (pass: Pass, call: Call) => void,
    present?: (value: unknown) => T,
  ): Promise<T> {
    const pass = this.#pass
    const request = { verb, name, method, begin: (call: Call) => begin(pass, call) }
    return pass.call(present === undefined ? request : { ...request, present }) as Promise<T>
  }
}

class StartedChild<O> implements ChildRun<O> {
  readonly id: string
  readonly newlySubmitted: boolean
  readonly #pass: Pass

  constructor(pass: Pass, recorded: unknown) {
    const { id, created } = startedRun(recorded)
    this.id = id
    this.newlySubmitted = created
    this.#pass = pass
  }

  result(): Promise<O> {
    const pass = this.#pass
    const begin = (call: Call): void => void beginResult(pass, call, this.id)
    // The stored output is what the definition's function, typed to give an O, returned.
    return pass.call({ verb: 'result', name: this.id, method: this.result, begin }) as Promise<O>
  }
}

/** What callers without types give may be anything, and is refused as no name. */
function nameOf(target: AnyDefinition | string): unknown {
  return typeof target === 'object' && target !== null ? target.name : target
}

/** What is said of a child, and the options of any start. What is no object is refused like any such options. */
function splitOptions(options: ChildOptions | undefined): {
  readonly detached: boolean
  readonly forStart: StartOptions | undefined
} {
  if (typeof options !== 'object' || options === null) return { detached: false, forStart: options }
  const { detached = false, ...forStart } = options
  return { detached: booleanOption('ctx.start.detached', detached), forStart }
}

/** After so many milliseconds by the store's clock. */
function instantIn({ clock }: Pass, ms: number): EpochMs {
  return Math.min(clock.now() + ms, LATEST_INSTANT_MS)
}
