/** The context of a workflow's body as its pass makes it: each durable call checks what it is given and asks the pass. */

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
import { runStep, type StepWork } from '../runtime/replay/step.ts'
import { TransactionTurn } from '../runtime/replay/transaction.ts'
import type { ChildOptions, ChildRun, StepArgument, WorkflowContext } from './context.ts'
import type { AnyDefinition, BodyHost, Starter } from './definition.ts'
import type { StartOptions } from './start-options.ts'
import { type StepOptions, stepPolicy } from './step-options.ts'
import { type SqlTransaction, type TransactionOptions, transactionWork } from './transaction.ts'

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
  readonly #transactions: TransactionTurn

  constructor(host: BodyHost, state: State) {
    this.state = state
    this.#pass = host.pass
    this.#logger = host.logger
    this.#prepare = (start, placing) => host.starter.prepare(start, placing)
    this.#transactions = new TransactionTurn(host.pass)
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
    assertFunction('step', name, body)
    const work: StepWork<AnyDefinition | string, StartOptions> = {
      policy: stepPolicy(name, options),
      body,
      prepare: this.#prepare,
    }
    return this.#call<T>('step', name, this.step, (pass, call) => void runStep(pass, call, work))
  }

  transaction<T>(
    name: string,
    ...rest:
      | [fn: (tx: SqlTransaction) => T | Promise<T>]
      | [options: TransactionOptions, fn: (tx: SqlTransaction) => T | Promise<T>]
  ): Promise<T> {
    checkName('transaction', name)
    const [options, body] = rest.length === 1 ? [undefined, rest[0]] : rest
    assertFunction('transaction', name, body)
    const work = transactionWork(name, options, { body, transactions: this.#pass.port.transactions })
    return this.#call<T>('transaction', name, this.transaction, (_, call) => void this.#transactions.begin(call, work))
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

function assertFunction(verb: string, name: string, body: unknown): void {
  if (typeof body === 'function') return
  const allowed = `${verb}(name, options?, fn)`
  throw new ConfigurationError({ option: `${verb} '${name}'`, problem: 'has no function', allowed })
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
