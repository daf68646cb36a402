/** What a workflow's body is given: its durable calls, its state, its log. */

import type { Duration } from '../core/duration.ts'
import type { Logger } from '../observe/log.ts'
import type { Attempt } from '../runtime/replay/attempts.ts'
import type { SignalResult } from '../runtime/replay/signal.ts'
import type { Definition } from './definition.ts'
import type { StartArgs, StartOptions } from './start-options.ts'
import type { StepOptions } from './step-options.ts'
import type { SqlTransaction, TransactionOptions } from './transaction.ts'

export type { SignalResult }

/** What a step's function is given. */
export interface StepArgument extends Attempt {
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
 * The context of a workflow's body. The durable calls (`step`, `transaction`, `sleep`, `sleepUntil`, `now`, `start`, a child's
 * `result`, `waitForSignal`, `sendSignal`) take a position where they are written, in the order of the calls, and record their
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
   * Runs SQL in the store's own database (SQLite, PostgreSQL), in a transaction that also records the call: what the
   * function has written and its value are committed together, or neither is. So it has its effects exactly once, however
   * often the process dies. Everything goes through `tx`; what the function does elsewhere is done at least once.
   *
   * What it throws rolls everything back, and is recorded like a step's error, after the retries that the options allow.
   * When other transactions or the database interfere (a serialization failure, a deadlock, a lost connection), the
   * function is called again in a fresh transaction, which counts as no attempt: it must not change anything but the
   * database.
   *
   * A run has one transaction open at a time. On SQLite it holds the file's write lock from its first statement on, for at
   * most 5 seconds. See docs/transactions.md.
   *
   * @throws what the function threw on its last attempt, with name, message, cause and own fields.
   * @throws StepTimeoutError when the last attempt took longer than `timeout`.
   * @throws TransactionTooLongError when it held the write lock of SQLite for too long.
   * @throws NestedDurableCallError at once, when called inside the function of a step or a transaction; and, recorded, when
   *   another transaction of this run is open.
   * @throws ConfigurationError at once, if the store has no SQL, as memory().
   * @example
   * const left = await ctx.transaction('take', async (tx) => {
   *   const [row] = await tx.query<{ n: number }>('update stock set n = n - ? where item = ? returning n', [1, item])
   *   if (row === undefined || row.n < 0) throw new SoldOut(item)
   *   return row.n
   * })
   */
  transaction<T>(name: string, fn: (tx: SqlTransaction) => T | Promise<T>): Promise<T>
  transaction<T>(name: string, options: TransactionOptions, fn: (tx: SqlTransaction) => T | Promise<T>): Promise<T>

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
