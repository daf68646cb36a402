/**
 * `ctx.step`: runs a function with effects and records its outcome once, after its retries.
 *
 * At least once: the body runs again only if the process died, or lost its lease, between the effect and the record.
 * Attempts of a step are not recorded, only their number with the outcome; a crash starts them anew. What the attempt
 * that succeeds has staged (effects.ts) is committed with its record.
 */
import { type Backoff, backoffMs } from '../../core/backoff.ts'
import type { Timer } from '../../core/clock.ts'
import { SerializationError, StepTimeoutError } from '../../core/errors.ts'
import type { Effect } from '../../store/commands.ts'
import type { EncodedValue } from '../../store/records.ts'
import type { Call } from './call.ts'
import { type PrepareFollowUp, StagedEffects } from './effects.ts'
import type { Outcome } from './journal.ts'
import type { Pass } from './pass.ts'
import type { Running } from './running.ts'
import { insideStep } from './scope.ts'

/** What a step's body is given. */
export interface StepAttempt {
  /**
   * `<runId>:<position>`: the same on every attempt and every replay, and unique in the run. Give it to the service
   * that the step calls, so that a repeated call is recognised.
   */
  readonly idempotencyKey: string
  /** From 1; starts anew when a crash interrupted the step. */
  readonly attempt: number
  /** Aborted on the step's timeout, when the run is cancelled or over, and when its claim is lost. */
  readonly signal: AbortSignal
}

export interface StepPolicy {
  readonly maxAttempts: number
  readonly backoff: Backoff
  readonly retryIf: ((error: unknown) => boolean) | undefined
  readonly timeoutMs: number | undefined
}

/** `Target` and `Options` are what starts among the effects take. */
export interface StepWork<Target, Options> {
  readonly policy: StepPolicy
  readonly body: (step: RunningStep<Target, Options>) => unknown
  readonly prepare: PrepareFollowUp<Target, Options>
}

type AttemptEnd =
  | { readonly type: 'returned'; readonly value: EncodedValue; readonly effects: readonly Effect[] | undefined }
  /** `settled`: when the body has ended too, which may be later than its timeout. */
  | {
      readonly type: 'failed'
      readonly error: unknown
      readonly retryable: boolean
      readonly settled: Promise<unknown>
    }

/** A retry waits for the timed-out body before it, but no longer than this. */
const LONGEST_WAIT_FOR_TIMED_OUT_BODY_MS = 5_000

/** Runs the step's attempts and records the outcome. Never rejects. */
export async function runStep<T, O>(pass: Pass, call: Call, work: StepWork<T, O>): Promise<void> {
  const { policy } = work
  for (let attempt = 1; ; attempt += 1) {
    const end = await runAttempt(pass, call, work, attempt)
    if (pass.over) return pass.discard(call)
    if (end.type === 'returned') return pass.record(call, succeeded(end, attempt))
    const verdict = attempt < policy.maxAttempts && end.retryable ? wantsRetry(policy, end.error) : end.error
    if (verdict !== RETRY) return pass.recordError(call, verdict, attempt)
    await beforeNextAttempt(pass, end.settled, backoffMs(policy.backoff, attempt, pass.random))
    if (pass.over) return pass.discard(call)
  }
}

function succeeded({ value, effects }: AttemptEnd & { readonly type: 'returned' }, attempts: number): Outcome {
  return effects === undefined ? { failed: false, value, attempts } : { failed: false, value, attempts, effects }
}

const RETRY = Symbol('retry')

/** RETRY, or the error to record: `retryIf` itself may throw, which is then what went wrong. */
function wantsRetry(policy: StepPolicy, error: unknown): unknown {
  try {
    return (policy.retryIf?.(error) ?? true) ? RETRY : error
  } catch (thrown) {
    return thrown
  }
}

async function runAttempt<T, O>(pass: Pass, call: Call, work: StepWork<T, O>, attempt: number): Promise<AttemptEnd> {
  const step = new RunningStep(pass, call, work.prepare, attempt)
  const leave = pass.enter(step)
  const running = step.finished(insideStep({ runId: pass.runId, step: call.name }, async () => work.body(step)))
  const settled = running.then(leave, leave)
  try {
    return encodeValue(pass, await withTimeout(pass, call, step, work.policy.timeoutMs, running), settled)
  } catch (error) {
    step.end()
    return { type: 'failed', error, retryable: true, settled }
  }
}

/** What the function of a step has come to. */
interface Finished {
  readonly value: unknown
  readonly effects: readonly Effect[] | undefined
}

/** What a step's function is given. Its abort signal and its effects are only made if somebody asks for them. */
export class RunningStep<Target, Options> implements StepAttempt, Running {
  readonly isUserCode = true
  readonly idempotencyKey: string
  readonly attempt: number
  readonly #pass: Pass
  readonly #call: Call
  readonly #prepare: PrepareFollowUp<Target, Options>
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined
  #staged: StagedEffects<Target, Options> | undefined
  #ended = false
  /** Of the attempt's timeout: nobody waits for it any more once the step is aborted, whether or not its body ends. */
  timeout: Timer | undefined

  constructor(pass: Pass, call: Call, prepare: PrepareFollowUp<Target, Options>, attempt: number) {
    this.idempotencyKey = `${pass.runId}:${call.position}`
    this.attempt = attempt
    this.#pass = pass
    this.#call = call
    this.#prepare = prepare
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  get effects(): StagedEffects<Target, Options> {
    if (this.#staged === undefined) {
      const { name: step, position } = this.#call
      this.#staged = new StagedEffects({ pass: this.#pass, position, step, prepare: this.#prepare })
      if (this.#ended) this.#staged.close()
    }
    return this.#staged
  }

  abort(reason: unknown): void {
    this.#aborted ??= { reason }
    this.timeout?.cancel()
    this.#controller?.abort(reason)
  }

  /** Waits for the function, and for what it has staged. */
  async finished(running: Promise<unknown>): Promise<Finished> {
    const value = await running
    this.end()
    return { value, effects: this.#staged === undefined ? undefined : await this.#staged.collect() }
  }

  /** The attempt is over: what it stages now would come too late. */
  end(): void {
    this.#ended = true
    this.#staged?.close()
  }
}

async function withTimeout<T>(
  pass: Pass,
  call: Call,
  step: Pick<RunningStep<never, never>, 'abort' | 'timeout'>,
  timeoutMs: number | undefined,
  running: Promise<T>,
): Promise<T> {
  if (timeoutMs === undefined) return running
  const timedOut = new Promise<never>((_, reject) => {
    step.timeout = pass.clock.at(pass.clock.now() + timeoutMs, () => {
      const error = new StepTimeoutError({ runId: pass.runId, step: call.name, timeoutMs })
      reject(error)
      step.abort(error)
    })
  })
  try {
    return await Promise.race([running, timedOut])
  } finally {
    step.timeout?.cancel()
  }
}

/** A value that can't be stored fails the step, and would fail it again: it is not retried. */
function encodeValue(pass: Pass, { value, effects }: Finished, settled: Promise<unknown>): AttemptEnd {
  try {
    return { type: 'returned', value: pass.codec.encode(value), effects }
  } catch (error) {
    return { type: 'failed', error, retryable: !(error instanceof SerializationError), settled }
  }
}

async function beforeNextAttempt(pass: Pass, settled: Promise<unknown>, pauseMs: number): Promise<void> {
  await pause(pass, pauseMs)
  if (pass.over) return
  let bound: { cancel(): void } | undefined
  const longest = new Promise<void>((resolve) => {
    bound = pass.scheduler.after(LONGEST_WAIT_FOR_TIMED_OUT_BODY_MS, resolve)
  })
  const leave = pass.enter({ isUserCode: false, abort: () => bound?.cancel() })
  await Promise.race([settled, longest])
  bound?.cancel()
  leave()
}

/** Waits on the store's clock; cut short when the pass is told to end. */
async function pause(pass: Pass, pauseMs: number): Promise<void> {
  if (pauseMs <= 0) return
  await new Promise<void>((resolve) => {
    const timer = pass.clock.at(pass.clock.now() + pauseMs, done)
    const leave = pass.enter({ isUserCode: false, abort: done })
    function done(): void {
      timer.cancel()
      leave()
      resolve()
    }
  })
}
