/** The options of `ctx.step`. */
import type { Backoff } from '../core/backoff.ts'
import { type Duration, toMs } from '../core/duration.ts'
import { checkFunction, checkOptions, integerOption, numberOption } from '../core/options.ts'
import type { AttemptPolicy } from '../runtime/replay/attempts.ts'

export interface StepOptions {
  /** How often the function is called at most, until it succeeds. Default 1: no retries. */
  readonly maxAttempts?: number
  /** The pause before each retry. Default: 100 ms, doubled each time, at most 5 s, without jitter. */
  readonly backoff?: BackoffOptions
  /** Asked before each retry; false makes this error the final one. Default: every error is retried. */
  readonly retryIf?: (error: unknown) => boolean
  /** For each attempt: its `signal` is aborted then, and the attempt fails with StepTimeoutError. Default: none. */
  readonly timeout?: Duration
}

export interface BackoffOptions {
  /** The pause before the first retry. Default 100 ms. */
  readonly base?: Duration
  /** What each further pause is multiplied by, at least 1. Default 2. */
  readonly factor?: number
  /** No pause is longer. Default 5 s. */
  readonly max?: Duration
  /** The fraction, 0 to 1, by which a pause may be shorter or longer, at random. Default 0. */
  readonly jitter?: number
}

const DEFAULT_BACKOFF: Backoff = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0 }
const DEFAULT_POLICY: AttemptPolicy = {
  maxAttempts: 1,
  backoff: DEFAULT_BACKOFF,
  retryIf: undefined,
  timeoutMs: undefined,
}

/** @throws ConfigurationError, InvalidDurationError */
export function stepPolicy(name: string, options: StepOptions | undefined): AttemptPolicy {
  if (options === undefined) return DEFAULT_POLICY
  checkOptions(`step '${name}'`, options, ATTEMPT_OPTIONS)
  return attemptPolicy(`step '${name}'`, options)
}

export const ATTEMPT_OPTIONS = ['maxAttempts', 'backoff', 'retryIf', 'timeout'] as const

/** Of options whose names have been checked. @throws ConfigurationError, InvalidDurationError */
export function attemptPolicy(what: string, options: StepOptions): AttemptPolicy {
  const { maxAttempts, backoff, retryIf, timeout } = options
  if (retryIf !== undefined) checkFunction(`${what}.retryIf`, retryIf)
  return {
    maxAttempts: maxAttempts === undefined ? 1 : integerOption(`${what}.maxAttempts`, maxAttempts, 1),
    backoff: backoff === undefined ? DEFAULT_BACKOFF : backoffPolicy(`${what}.backoff`, backoff, DEFAULT_BACKOFF),
    retryIf,
    timeoutMs: timeout === undefined ? undefined : toMs(timeout, `${what}.timeout`),
  }
}

/** `defaults`: what is not given. @throws ConfigurationError, InvalidDurationError */
export function backoffPolicy(what: string, options: BackoffOptions, defaults: Backoff): Backoff {
  checkOptions(what, options, ['base', 'factor', 'max', 'jitter'])
  const { base, factor, max, jitter } = options
  return {
    baseMs: base === undefined ? defaults.baseMs : toMs(base, `${what}.base`),
    factor: factor === undefined ? defaults.factor : numberOption(`${what}.factor`, factor, 1, Number.MAX_VALUE),
    maxMs: max === undefined ? defaults.maxMs : toMs(max, `${what}.max`),
    jitter: jitter === undefined ? defaults.jitter : numberOption(`${what}.jitter`, jitter, 0, 1),
  }
}
