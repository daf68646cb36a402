/** `queue`: what is said of a queue where an engine is made. */
import type { Backoff } from '../core/backoff.ts'
import { type Duration, toWholeMs } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { checkOwnName } from '../core/names.ts'
import { checkOptions, integerOption } from '../core/options.ts'
import type { WorkerQueue } from '../runtime/worker-queue.ts'
import type { QueueKnobs } from '../store/records.ts'
import { checkRelease, KNOBS, knobsOf, type QueueKnobOptions } from './queue-knobs.ts'
import { type BackoffOptions, backoffPolicy } from './step-options.ts'

/**
 * The first group are the knobs of this process. Those of the second, from `QueueKnobOptions`, are limits that all
 * processes keep together: they are kept in the store, and a launch writes them there unless a process with a higher
 * `configVersion` has.
 */
export interface QueueOptions extends QueueKnobOptions {
  /**
   * How many of its runs this process may have in hand at a time, of each partition key on a partitioned queue.
   * Suspended runs don't count. Default: as many as the engine's `maxConcurrent`.
   */
  readonly workerConcurrency?: number
  /** How many of its runs a look at the queue claims at most. Default 100. */
  readonly maxTasksPerIteration?: number
  /**
   * How often the queue is looked at when nothing tells of new runs, as a fallback. One look serves all queues of a
   * process, so the shortest interval of them holds for all. Default 1 s.
   */
  readonly basePollingInterval?: Duration
  /** How rare looks become at most while they fail; not shorter than `basePollingInterval`. Default 120 s. */
  readonly maxPollingInterval?: Duration
  /** How long a claim of its runs lasts unless it is renewed, which it is at each third of it. Default 30 s. */
  readonly lease?: Duration
  /** For jobs and step runners of this queue that don't say themselves; workflows take no notice of it. Default 3. */
  readonly maxAttempts?: number
  /**
   * Between attempts of jobs and step runners; workflows take no notice of it. Default: 1 s, doubled each time, at most
   * 5 min.
   */
  readonly backoff?: BackoffOptions
  /**
   * Of the fleet-wide knobs. A launch writes its own over those in the store if its `configVersion` is not lower than
   * theirs: raise it when you change a knob, and a process that still runs the older code won't change it back.
   * A whole number. Default 0.
   */
  readonly configVersion?: number
}

declare const brand: unique symbol

/** A queue as an Engine takes it, made by `queue`. */
export interface Queue {
  readonly name: string
  /** For the type system only. */
  readonly [brand]?: never
}

/** What the engine knows of a queue. */
export interface QueueConfig extends Omit<WorkerQueue, 'listened'> {
  readonly maxAttempts: number
  readonly backoff: Backoff
}

const configs = new WeakMap<Queue, QueueConfig>()

const OPTIONS = [
  'workerConcurrency',
  'maxTasksPerIteration',
  'basePollingInterval',
  'maxPollingInterval',
  'lease',
  'maxAttempts',
  'backoff',
  'configVersion',
  ...KNOBS,
]
const NO_LIMITS: QueueKnobs = {
  globalConcurrency: null,
  releaseWhileWaiting: false,
  rateLimit: null,
  priorityEnabled: false,
  partitioned: false,
  retention: null,
}
const DEFAULT_BACKOFF: Backoff = { baseMs: 1_000, factor: 2, maxMs: 300_000, jitter: 0 }

/**
 * Describes a queue for `EngineOptions.queues`: runs that are started with `{ queue: name }` wait in the store until a
 * process that has their definition takes them, within the limits given here. Nothing is opened or stored before an
 * engine with it is launched.
 *
 * @throws InvalidIdError for a name that is empty, longer than 255 bytes, has control characters, or begins with
 *   `perdure:`.
 * @throws ConfigurationError, InvalidDurationError for options that don't exist, are out of range, or contradict each
 *   other.
 * @example
 * const media = queue('media', { workerConcurrency: 2 })
 * const api = queue('api', { rateLimiter: { limit: 100, period: '1m' } })
 * const perCustomer = queue('customers', { partitioned: true, globalConcurrency: 1 })
 */
export function queue(name: string, options: QueueOptions = {}): Queue {
  checkOwnName('queue name', name)
  const what = `queue '${name}'`
  checkOptions(what, options, OPTIONS)
  const { workerConcurrency, maxTasksPerIteration = 100, lease, maxAttempts = 3, backoff, configVersion = 0 } = options
  const knobs: QueueKnobs = { ...NO_LIMITS, ...knobsOf(what, options) }
  checkRelease(what, knobs)
  const config: QueueConfig = {
    registration: { name, configVersion: integerOption(`${what}.configVersion`, configVersion, 0), ...knobs },
    workerConcurrency:
      workerConcurrency === undefined ? null : integerOption(`${what}.workerConcurrency`, workerConcurrency, 1),
    maxTasksPerIteration: integerOption(`${what}.maxTasksPerIteration`, maxTasksPerIteration, 1),
    ...pollingOf(what, options),
    leaseMs: lease === undefined ? null : toWholeMs(lease, `${what}.lease`, 1),
    maxAttempts: integerOption(`${what}.maxAttempts`, maxAttempts, 1),
    backoff: backoff === undefined ? DEFAULT_BACKOFF : backoffPolicy(`${what}.backoff`, backoff, DEFAULT_BACKOFF),
  }
  const made: Queue = Object.freeze({ name })
  configs.set(made, config)
  return made
}

/** undefined if the object was not made by this package's `queue`. */
export function queueConfig(made: Queue): QueueConfig | undefined {
  return configs.get(made)
}

function pollingOf(what: string, options: QueueOptions): Pick<QueueConfig, 'basePollingMs' | 'maxPollingMs'> {
  const { basePollingInterval = '1s', maxPollingInterval } = options
  const basePollingMs = toWholeMs(basePollingInterval, `${what}.basePollingInterval`, 1)
  if (maxPollingInterval === undefined) return { basePollingMs, maxPollingMs: Math.max(basePollingMs, 120_000) }
  const maxPollingMs = toWholeMs(maxPollingInterval, `${what}.maxPollingInterval`, 1)
  if (maxPollingMs < basePollingMs) {
    throw new ConfigurationError({
      option: `${what}.maxPollingInterval`,
      problem: `${maxPollingMs} ms is less than basePollingInterval, ${basePollingMs} ms`,
      allowed: 'a duration that is not shorter than basePollingInterval',
    })
  }
  return { basePollingMs, maxPollingMs }
}
