/** The knobs of a queue that hold for all processes: given at launch, and changed at run time by `queues.configure`. */
import { type Duration, toWholeMs } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { booleanOption, checkOptions, integerOption } from '../core/options.ts'
import type { QueueKnobs } from '../store/records.ts'
import { type RetentionOption, retentionOf } from './retention.ts'

export interface RateLimiter {
  /** How many runs may start, of each partition key on a partitioned queue ... */
  readonly limit: number
  /** ... in any window of this length. What became of them makes no difference. */
  readonly period: Duration
}

/** `null` lifts a limit. */
export interface QueueKnobOptions {
  /**
   * How many runs may be running or suspended (`PENDING` or `WAITING`) at a time in all processes, of each partition key on
   * a partitioned queue. A run that sleeps still holds its turn. Default: any number.
   */
  readonly globalConcurrency?: number | null
  /** A suspended run does not count against `globalConcurrency`; to go on it needs room again. Default false. */
  readonly releaseWhileWaiting?: boolean
  /** How many runs may start in a window of time, in all processes. A resume is no start. Default: any number. */
  readonly rateLimiter?: RateLimiter | null
  /** Runs with a lower `priority` go first, equal ones in the order they came. Default false: in the order they came. */
  readonly priorityEnabled?: boolean
  /**
   * Every limit counts for each `partitionKey` by itself, and keys are served in turn. Runs without a key are stored and
   * never run. Default false.
   */
  readonly partitioned?: boolean
  /** How long its runs are kept after their end, unless their definition says. Default: for ever. */
  readonly retention?: RetentionOption | null
}

export const KNOBS = [
  'globalConcurrency',
  'releaseWhileWaiting',
  'rateLimiter',
  'priorityEnabled',
  'partitioned',
  'retention',
] as const

/** Those that are given. @throws ConfigurationError, InvalidDurationError */
export function knobsOf(what: string, options: QueueKnobOptions): Partial<QueueKnobs> {
  const { globalConcurrency, releaseWhileWaiting, rateLimiter, priorityEnabled, partitioned, retention } = options
  return {
    ...(globalConcurrency === undefined
      ? {}
      : {
          globalConcurrency: orNull(globalConcurrency, (limit) => integerOption(`${what}.globalConcurrency`, limit, 1)),
        }),
    ...(releaseWhileWaiting === undefined
      ? {}
      : { releaseWhileWaiting: booleanOption(`${what}.releaseWhileWaiting`, releaseWhileWaiting) }),
    ...(rateLimiter === undefined
      ? {}
      : { rateLimit: orNull(rateLimiter, (limiter) => rateLimitOf(`${what}.rateLimiter`, limiter)) }),
    ...(priorityEnabled === undefined
      ? {}
      : { priorityEnabled: booleanOption(`${what}.priorityEnabled`, priorityEnabled) }),
    ...(partitioned === undefined ? {} : { partitioned: booleanOption(`${what}.partitioned`, partitioned) }),
    ...(retention === undefined
      ? {}
      : { retention: orNull(retention, (given) => retentionOf(`${what}.retention`, given)) }),
  }
}

/** Refuses to let go of what is not held. */
export function checkRelease(what: string, knobs: Pick<QueueKnobs, 'releaseWhileWaiting' | 'globalConcurrency'>): void {
  if (!knobs.releaseWhileWaiting || knobs.globalConcurrency !== null) return
  throw new ConfigurationError({
    option: `${what}.releaseWhileWaiting`,
    problem: 'it says what counts against globalConcurrency, and the queue has none',
    allowed: 'true on a queue with globalConcurrency',
  })
}

function rateLimitOf(what: string, limiter: RateLimiter): QueueKnobs['rateLimit'] {
  checkOptions(what, limiter, ['limit', 'period'])
  return {
    limit: integerOption(`${what}.limit`, limiter.limit, 1),
    periodMs: toWholeMs(limiter.period, `${what}.period`, 1),
  }
}

function orNull<T, R>(given: T | null, read: (value: T) => R): R | null {
  return given === null ? null : read(given)
}
