/** What a workflow's body is given: its durable calls, its state, its log. */

import { type Duration, toMs } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import type { Logger } from '../observe/log.ts'
import { silent } from '../observe/log.ts'
import { DerivedRandom } from '../runtime/replay/derived.ts'
import { beginNow } from '../runtime/replay/now.ts'
import type { Pass } from '../runtime/replay/pass.ts'
import { beginSleep } from '../runtime/replay/sleep.ts'
import { runStep, type StepArgument } from '../runtime/replay/step.ts'
import type { BodyHost } from './definition.ts'
import { checkName } from './names.ts'
import { type StepOptions, stepPolicy } from './step-options.ts'

/**
 * The context of a workflow's body. The durable calls (`step`, `sleep`, `sleepUntil`, `now`) take a position where
 * they are written, in the order of the calls, and record their outcome there: a replay after a crash or a sleep walks
 * the body again and gets the records instead of running anything twice.
 *
 * A body may await these calls only, and must be deterministic between them: use `now`, `uuid` and `random` instead of
 * `Date`, `crypto` and `Math.random`. See docs/determinism.md.
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
   * Waits for a duration (milliseconds, or '5m'); the wake instant is recorded and kept across crashes. A run that
   * has only sleeps of more than a second to wait for is suspended: it holds no memory, lease or slot meanwhile.
   *
   * @throws InvalidDurationError for a negative, infinite or unreadable duration.
   */
  sleep(duration: Duration): Promise<void>
  /** Waits until an instant; at once if it is past. */
  sleepUntil(instant: Date): Promise<void>
  /** The current instant by the store's clock, recorded. */
  now(): Promise<Date>
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
  readonly #derived: DerivedRandom

  constructor(host: BodyHost, state: State) {
    this.state = state
    this.#pass = host.pass
    this.#logger = host.logger
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
    const [options, fn] = rest.length === 1 ? [undefined, rest[0]] : rest
    if (typeof fn !== 'function') {
      throw new ConfigurationError({
        option: `step '${name}'`,
        problem: 'has no function',
        allowed: 'step(name, options?, fn)',
      })
    }
    const policy = stepPolicy(name, options)
    return this.#call<T>('step', name, this.step, (pass, call) => void runStep(pass, call, policy, fn))
  }

  sleep(duration: Duration): Promise<void> {
    const ms = toMs(duration, 'ctx.sleep')
    const { clock } = this.#pass
    return this.#call('sleep', '', this.sleep, (pass, call) =>
      beginSleep(pass, call, () => Math.min(clock.now() + ms, LATEST_INSTANT_MS)),
    )
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

  uuid(): string {
    return this.#derived.uuid()
  }

  random(): number {
    return this.#derived.random()
  }

  /** What a call resolves to is what it recorded, decoded: of the type that its verb recorded. */
  #call<T>(
    verb: string,
    name: string,
    method: (...args: never[]) => unknown,
    begin: (pass: Pass, call: Parameters<Parameters<Pass['call']>[0]['begin']>[0]) => void,
  ): Promise<T> {
    const pass = this.#pass
    return pass.call({ verb, name, method, begin: (call) => begin(pass, call) }) as Promise<T>
  }
}
