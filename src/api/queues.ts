/** `queues`: the registered queues as the store knows them, for operators. */
import { UnknownQueueError } from '../core/errors.ts'
import { checkName } from '../core/names.ts'
import { checkOptions, integerOption } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import type { QueueChange, QueueStats } from '../store/contract.ts'
import type { QueueRecord, Retention } from '../store/records.ts'
import { checkRelease, KNOBS, knobsOf, type QueueKnobOptions } from './queue-knobs.ts'

/** A queue as it is for all processes. */
export interface RegisteredQueue {
  readonly name: string
  /** Nothing of a paused queue is claimed, resumes included. */
  readonly paused: boolean
  readonly globalConcurrency: number | undefined
  readonly releaseWhileWaiting: boolean
  /** `period` in milliseconds. */
  readonly rateLimiter: { readonly limit: number; readonly period: number } | undefined
  readonly priorityEnabled: boolean
  readonly partitioned: boolean
  /** In milliseconds. */
  readonly retention: { readonly [Status in keyof Retention]: number | 'forever' } | undefined
  /** Of whoever wrote the knobs last. */
  readonly configVersion: number
  readonly updatedAt: Date
}

export interface QueueChanges extends QueueKnobOptions {
  /** See `QueueOptions.configVersion`. Default: stays as it is. */
  readonly configVersion?: number
}

/** Queues are known to the store once an engine with them was launched. */
export interface Queues {
  /** By name. */
  list(): Promise<readonly RegisteredQueue[]>
  /** How many runs of the queue are in each status, the terminal ones apart. @throws UnknownQueueError */
  stats(name: string): Promise<QueueStats>
  /**
   * From now on nothing of the queue is claimed, by any process, until `resume`: neither runs that wait for their start nor
   * suspended ones. What runs goes on; starts are accepted. Survives restarts. @throws UnknownQueueError
   */
  pause(name: string): Promise<void>
  /** @throws UnknownQueueError */
  resume(name: string): Promise<void>
  /**
   * Changes the knobs that are given, for all processes, from their next claim on, and gives what holds then. `null` lifts
   * a limit. Runs that are in hand already are let be.
   *
   * The `configVersion` stays as it is unless it is given. The next launch of a process whose own is at least as high writes the
   * knobs of its code over these: change them there too, or give a `configVersion` that is higher than that in the code.
   *
   * @throws UnknownQueueError; ConfigurationError, InvalidDurationError for knobs that are not allowed.
   * @example
   * await engine.queues.configure('api', { rateLimiter: { limit: 50, period: '1m' }, configVersion: 7 })
   */
  configure(name: string, changes: QueueChanges): Promise<RegisteredQueue>
}

export function queuesOf(hub: () => Promise<Hub>): Queues {
  const change = async (name: string, wanted: QueueChange): Promise<QueueRecord> => {
    const opened = await hub()
    const changed = await opened.changeQueue(name, wanted)
    return changed ?? unknown(opened, name)
  }
  return {
    list: async () => (await (await hub()).store.queues()).map(toQueue),
    stats: async (name) => {
      checkName('queue name', name)
      const opened = await hub()
      await registered(opened, name)
      return opened.store.queueStats(name)
    },
    pause: async (name) => {
      checkName('queue name', name)
      await change(name, { paused: true })
    },
    resume: async (name) => {
      checkName('queue name', name)
      await change(name, { paused: false })
    },
    configure: async (name, changes) => {
      checkName('queue name', name)
      const what = `configure '${name}'`
      checkOptions(what, changes, [...KNOBS, 'configVersion'])
      const knobs = knobsOf(what, changes)
      const { configVersion } = changes
      if (configVersion !== undefined) integerOption(`${what}.configVersion`, configVersion, 0)
      if (knobs.releaseWhileWaiting === true) checkRelease(what, { ...(await registered(await hub(), name)), ...knobs })
      return toQueue(await change(name, { ...knobs, ...(configVersion === undefined ? {} : { configVersion }) }))
    },
  }
}

async function registered({ store }: Hub, name: string): Promise<QueueRecord> {
  const queues = await store.queues()
  const found = queues.find((queue) => queue.name === name)
  if (found === undefined) throw new UnknownQueueError({ queue: name, known: queues.map((queue) => queue.name) })
  return found
}

async function unknown({ store }: Hub, name: string): Promise<never> {
  throw new UnknownQueueError({ queue: name, known: (await store.queues()).map((queue) => queue.name) })
}

function toQueue(queue: QueueRecord): RegisteredQueue {
  const { rateLimit, retention } = queue
  return {
    name: queue.name,
    paused: queue.paused,
    globalConcurrency: queue.globalConcurrency ?? undefined,
    releaseWhileWaiting: queue.releaseWhileWaiting,
    rateLimiter: rateLimit === null ? undefined : { limit: rateLimit.limit, period: rateLimit.periodMs },
    priorityEnabled: queue.priorityEnabled,
    partitioned: queue.partitioned,
    retention:
      retention === null
        ? undefined
        : {
            success: retention.success ?? 'forever',
            error: retention.error ?? 'forever',
            dead: retention.dead ?? 'forever',
            cancelled: retention.cancelled ?? 'forever',
          },
    configVersion: queue.configVersion,
    updatedAt: new Date(queue.updatedAt),
  }
}
