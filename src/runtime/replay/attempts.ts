/**
 * The attempts of a call that runs a function of the user's (a step, a transaction): how many, how long each may take,
 * and how long to wait before the next. They are not recorded, only their number with the outcome; a crash starts them
 * anew.
 */
import { type Backoff, backoffMs } from '../../core/backoff.ts'
import type { Timer } from '../../core/clock.ts'
import { StepTimeoutError } from '../../core/errors.ts'
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'
import type { Running } from './running.ts'

/** What the function of an attempt is given. */
export interface Attempt {
  /**
   * `<runId>:<position>`: the same on every attempt and every replay, and unique in the run. Give it to a
   * service that the function calls, so that a repeated call is recognised.
   */
  readonly idempotencyKey: string
  /** From 1; starts anew when a crash interrupted the call. */
  readonly attempt: number
  /** Aborted on the timeout, when the run is cancelled or over, and when its claim is lost. */
  readonly signal: AbortSignal
}

export interface AttemptPolicy {
  readonly maxAttempts: number
  readonly backoff: Backoff
  readonly retryIf: ((error: unknown) => boolean) | undefined
  readonly timeoutMs: number | undefined
}

export interface FailedAttempt {
  readonly type: 'failed'
  readonly error: unknown
  readonly retryable: boolean
  /** When the function has ended too, which may be later than its timeout. */
  readonly settled: Promise<unknown>
}

/** A retry waits for the timed-out function before it, but no longer than this. */
const LONGEST_WAIT_FOR_TIMED_OUT_BODY_MS = 5_000

/** `E`: how one ends that has succeeded. */
export interface Attempts<E> {
  run(attempt: number): Promise<E | FailedAttempt>
  succeeded(end: E, attempt: number): void
}

/** Makes attempts until one succeeds, or records the error of the last. Never rejects. */
export async function runAttempts<E extends { readonly type: 'returned' }>(
  pass: Pass,
  call: Call,
  policy: AttemptPolicy,
  attempts: Attempts<E>,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const end = await attempts.run(attempt)
    if (pass.over) return pass.discard(call)
    if (end.type === 'returned') return attempts.succeeded(end, attempt)
    const verdict = attempt < policy.maxAttempts && end.retryable ? wantsRetry(policy, end.error) : end.error
    if (verdict !== RETRY) return pass.recordError(call, verdict, attempt)
    await beforeNextAttempt(pass, end.settled, backoffMs(policy.backoff, attempt, pass.random))
    if (pass.over) return pass.discard(call)
  }
}

const RETRY = Symbol('retry')

/** RETRY, or the error to record: `retryIf` itself may throw, which is then what went wrong. */
function wantsRetry(policy: AttemptPolicy, error: unknown): unknown {
  try {
    return (policy.retryIf?.(error) ?? true) ? RETRY : error
  } catch (thrown) {
    return thrown
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

/** An attempt under way. Its abort signal is only made if somebody asks for it. */
export class RunningAttempt implements Attempt, Running {
  readonly isUserCode = true
  readonly idempotencyKey: string
  readonly attempt: number
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined
  #timeout: Timer | undefined

  constructor(pass: Pass, call: Call, attempt: number) {
    this.idempotencyKey = `${pass.runId}:${call.position}`
    this.attempt = attempt
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  /** Nobody waits for its timeout any more, whether or not its function ends. */
  abort(reason: unknown): void {
    this.#aborted ??= { reason }
    this.clearTimeout()
    this.#controller?.abort(reason)
  }

  /** Aborts it, and calls back, when it has taken too long. */
  setTimeout(pass: Pass, call: Call, timeoutMs: number, onTimeout: (error: StepTimeoutError) => void): void {
    this.#timeout = pass.clock.at(pass.clock.now() + timeoutMs, () => {
      const error = new StepTimeoutError({ runId: pass.runId, step: call.name, timeoutMs })
      onTimeout(error)
      this.abort(error)
    })
  }

  clearTimeout(): void {
    this.#timeout?.cancel()
  }
}
