/** What an engine tells the store of itself when it begins to work: its queues, and then the process. */
import type { EngineEvent } from '../core/engine-events.ts'
import type { NewQueue } from '../store/contract.ts'
import type { ProcessRecord, QueueRecord, Retention } from '../store/records.ts'
import type { Hub } from './hub.ts'
import type { WorkerQueue } from './worker-queue.ts'

export interface Registration {
  readonly process: Omit<ProcessRecord, 'registeredAt'>
  readonly queues: readonly WorkerQueue[]
}

/**
 * Tells of queues for which other knobs hold than those given (a newer configuration was stored by somebody else), and
 * of those whose knobs this launch has changed for all processes.
 */
export async function register(
  hub: Hub,
  { process, queues }: Registration,
  onEvent: (event: EngineEvent) => void,
): Promise<void> {
  const given = queues.map(({ registration }) => registration)
  const before = given.length === 0 ? [] : await hub.store.queues()
  const records = given.length === 0 ? [] : await hub.registerQueues(given)
  for (const [index, queue] of given.entries()) {
    const differs = differences(queue, records[index])
    const previous = before.find(({ name }) => name === queue.name)
    const changed = differs.length > 0 ? [] : differences(queue, previous)
    if (differs.length > 0) onEvent({ type: 'queue.differs', queue: queue.name, knobs: differs })
    if (changed.length > 0) onEvent({ type: 'queue.changed', queue: queue.name, knobs: changed })
  }
  await hub.committer.registerProcess(process)
}

/** Tells, once for each change, of knobs that somebody else gives a queue while this engine runs. Returns the way to stop. */
export function watchKnobs(
  hub: Hub,
  queues: readonly WorkerQueue[],
  onEvent: (event: EngineEvent) => void,
): () => void {
  const given = queues.map(({ registration }) => registration)
  const known = new Map(given.map((queue) => [queue.name, differences(queue, hub.queues.of(queue.name)).join()]))
  return hub.queues.changes.on(({ records, configured }) => {
    for (const queue of given) {
      const record = records.find(({ name }) => name === queue.name)
      const knobs = differences(queue, record)
      if (record === undefined || knobs.join() === known.get(queue.name)) continue
      known.set(queue.name, knobs.join())
      if (knobs.length > 0 && !configured) onEvent({ type: 'queue.differs', queue: queue.name, knobs })
    }
  })
}

/** The knobs by the names that they have for users. */
function differences(given: NewQueue, held: QueueRecord | undefined): readonly string[] {
  if (held === undefined) return []
  const same: Readonly<Record<string, boolean>> = {
    globalConcurrency: given.globalConcurrency === held.globalConcurrency,
    releaseWhileWaiting: given.releaseWhileWaiting === held.releaseWhileWaiting,
    rateLimiter:
      given.rateLimit?.limit === held.rateLimit?.limit && given.rateLimit?.periodMs === held.rateLimit?.periodMs,
    priorityEnabled: given.priorityEnabled === held.priorityEnabled,
    partitioned: given.partitioned === held.partitioned,
    retention: isSameRetention(given.retention, held.retention),
  }
  return Object.keys(same).filter((knob) => same[knob] === false)
}

/** None is the same as one that keeps everything. */
function isSameRetention(a: Retention | null, b: Retention | null): boolean {
  const lengths = ['success', 'error', 'dead', 'cancelled'] as const
  return lengths.every((each) => (a?.[each] ?? null) === (b?.[each] ?? null))
}
