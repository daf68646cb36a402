/** Registered queues, and what runs derive from them. */
import type { EpochMs } from '../../core/clock.ts'
import type { NewQueue, QueueChange, QueueStats } from '../contract.ts'
import type { QueueRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Tables } from './tables.ts'

export function registerQueues(tables: Tables, queues: readonly NewQueue[], now: EpochMs): readonly QueueRecord[] {
  return queues.map((queue) => {
    const found = tables.queue(queue.name)
    if (found !== null && found.configVersion > queue.configVersion) return found
    return write(tables, toRecord(queue, found?.paused ?? false, now))
  })
}

export function changeQueue(tables: Tables, name: string, change: QueueChange, now: EpochMs): QueueRecord | undefined {
  const found = tables.queue(name)
  if (found === null) return undefined
  return write(tables, toRecord({ ...found, ...change }, change.paused ?? found.paused, now))
}

/** A copy, so that it is the store's own. */
function toRecord(queue: NewQueue, paused: boolean, updatedAt: EpochMs): QueueRecord {
  const { name, globalConcurrency, releaseWhileWaiting, rateLimit, priorityEnabled, partitioned } = queue
  return Object.freeze({
    name,
    globalConcurrency,
    releaseWhileWaiting,
    rateLimit: rateLimit === null ? null : Object.freeze({ ...rateLimit }),
    priorityEnabled,
    partitioned,
    retention: queue.retention === null ? null : Object.freeze({ ...queue.retention }),
    paused,
    configVersion: queue.configVersion,
    updatedAt,
  })
}

function write(tables: Tables, queue: QueueRecord): QueueRecord {
  const before = tables.queue(queue.name)
  tables.queues.set(queue.name, queue)
  tables.runs.line(queue.name).configure(queue)
  const samePlaces =
    (before?.partitioned ?? false) === queue.partitioned && (before?.priorityEnabled ?? false) === queue.priorityEnabled
  if (!samePlaces) replaceAll(tables, queue)
  return queue
}

/** Derives anew what runs derive from their queue, the oldest first, as they take turns in that order. */
function replaceAll(tables: Tables, queue: QueueRecord): void {
  for (const run of [...tables.runs.newest()].reverse()) {
    if (run.queue !== queue.name || isTerminal(run.status)) continue
    const { lane, rank } = transitions.placeInQueue(run, queue)
    if (lane !== run.lane || rank !== run.rank) tables.runs.put({ ...run, lane, rank })
  }
}

export function queueStats(tables: Tables, name: string): QueueStats {
  const stats = { enqueued: 0, delayed: 0, pending: 0, waiting: 0, keyless: 0 }
  for (const { queue, status, lane } of tables.runs.newest()) {
    if (queue !== name) continue
    if (status === 'ENQUEUED') stats.enqueued += 1
    if (status === 'ENQUEUED' && lane === null) stats.keyless += 1
    if (status === 'DELAYED') stats.delayed += 1
    if (status === 'PENDING') stats.pending += 1
    if (status === 'WAITING') stats.waiting += 1
  }
  return stats
}
