/** The queues of an engine, checked: which it knows, and which of them it serves. */
import { ConfigurationError, DuplicateQueueError, UnknownQueueError } from '../core/errors.ts'
import type { WorkerQueue } from '../runtime/worker-queue.ts'
import { type Queue, type QueueConfig, queueConfig } from './queue.ts'

export type EngineQueues = ReadonlyMap<string, WorkerQueue>

/** @throws ConfigurationError, DuplicateQueueError, UnknownQueueError */
export function checkQueues(queues: readonly Queue[] = [], listenQueues?: readonly string[]): EngineQueues {
  const configs = new Map<string, QueueConfig>()
  for (const each of listOf('Engine.queues', queues)) {
    const config = queueConfig(each)
    if (config === undefined) {
      const problem = 'has an entry that is no queue'
      throw new ConfigurationError({ option: 'Engine.queues', problem, allowed: "what queue('name', {...}) gives" })
    }
    const { name } = config.registration
    if (configs.has(name)) throw new DuplicateQueueError({ queue: name })
    configs.set(name, config)
  }
  const known = [...configs.keys()]
  const listened = new Set(listenQueues === undefined ? known : listOf('Engine.listenQueues', listenQueues))
  for (const queue of listened) {
    if (!configs.has(queue)) throw new UnknownQueueError({ queue: String(queue), known })
  }
  return new Map([...configs].map(([name, config]) => [name, { ...config, listened: listened.has(name) }]))
}

function listOf<T>(option: string, given: readonly T[]): readonly T[] {
  if (Array.isArray(given)) return given
  throw new ConfigurationError({ option, problem: 'is not an array', allowed: 'an array, which may be empty' })
}
