/**
 * `ctx.step`: runs a function with effects and records its outcome once, after its retries.
 *
 * At least once: the body runs again only if the process died, or lost its lease, between the effect and the record.
 * Attempts of a step are not recorded, only their number with the outcome; a crash starts them anew.
 */
import { type Backoff, backoffMs } from '../../core/backoff.ts'
import type { Timer } from '../../core/clock.ts'
import { SerializationError, StepTimeoutError } from '../../core/errors.ts'
import type { EncodedValue } from '../../store/records.ts'
import { encodeError } from '../thrown.ts'
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'
import type { Running } from './running.ts'
import { insideStep } from './scope.ts'

/** What a step's body is given. */
export interface StepArgument {
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

type StepBody = (step: StepArgument) => unknown

type AttemptEnd =
  | { readonly type: 'returned'; readonly value: EncodedValue }
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
export async function runStep(pass: Pass, call: Call, policy: StepPolicy, body: StepBody): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const end = await runAttempt(pass, call, policy, body, attempt)
    if (pass.over) return pass.discard(call)
    if (end.type === 'returned') return pass.record(call, { failed: false, value: end.value }, attempt)
    const verdict = attempt < policy.maxAttempts && end.retryable ? wantsRetry(policy, end.error) : end.error
    if (verdict !== RETRY) return pass.record(call, { failed: true, value: encodeError(pass.codec, verdict) }, attempt)
    await beforeNextAttempt(pass, end.settled, backoffMs(policy.backoff, attempt, pass.random))
    if (pass.over) return pass.discard(call)
  }
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

async function runAttempt(
  pass: Pass,
  call: Call,
  policy: StepPolicy,
  body: StepBody,
  attempt: number,
): Promise<AttemptEnd> {
  const step = new RunningStep(`${pass.runId}:${call.position}`, attempt)
  const leave = pass.enter(step)
  const running = insideStep({ runId: pass.runId, step: call.name }, async () => body(step))
  const settled = running.then(leave, leave)
  try {
    const value = await withTimeout(pass, call, step, policy.timeoutMs, running)
    return encodeValue(pass, value, settled)
  } catch (error) {
    return { type: 'failed', error, retryable: true, settled }
  }
}

/** A step's argument and its abort signal, which is only made if somebody asks for it. */
class RunningStep implements StepArgument, Running {
  readonly isUserCode = true
  readonly idempotencyKey: string
  readonly attempt: number
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined
  /** Of the attempt's timeout: nobody waits for it any more once the step is aborted, whether or not its body ends. */
  timeout: Timer | undefined

  constructor(idempotencyKey: string, attempt: number) {
    this.idempotencyKey = idempotencyKey
    this.attempt = attempt
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#aborted ??= { reason }
    this.timeout?.cancel()
    this.#controller?.abort(reason)
  }
}

async function withTimeout<T>(
  pass: Pass,
  call: Call,
  step: RunningStep,
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
function encodeValue(pass: Pass, value: unknown, settled: Promise<unknown>): AttemptEnd {
  try {
    return { type: 'returned', value: pass.codec.encode(value) }
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
