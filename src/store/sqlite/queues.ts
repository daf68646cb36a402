/** Registered queues: their knobs, which hold for all processes. */

import { number } from '../columns.ts'
import type { NewQueue, QueueChange, QueueStats } from '../contract.ts'
import { QUEUE_COLUMNS, toQueue } from '../queue-row.ts'
import type { QueueRecord } from '../records.ts'
import type { Database } from './database.ts'
import { deriveLanes, deriveRuns } from './derive.ts'
import { reopenLanes } from './lanes.ts'

export const QUEUE_BY_NAME = `select ${QUEUE_COLUMNS} from perdure_queues where name = ?`

export function findQueue(database: Database, name: string): QueueRecord | undefined {
  const row = database.prepare(QUEUE_BY_NAME).get(name)
  return row === undefined ? undefined : toQueue(row)
}

const ALL_QUEUES = `select ${QUEUE_COLUMNS} from perdure_queues order by name`

export function allQueues(database: Database): readonly QueueRecord[] {
  return database.prepare(ALL_QUEUES).all().map(toQueue)
}

export function registerQueues(database: Database, queues: readonly NewQueue[]): readonly QueueRecord[] {
  return queues.map((queue) => {
    const found = findQueue(database, queue.name)
    if (found !== undefined && found.configVersion > queue.configVersion) return found
    return write(database, found, { ...queue, paused: found?.paused ?? false })
  })
}

export function changeQueue(database: Database, name: string, change: QueueChange): QueueRecord | undefined {
  const found = findQueue(database, name)
  return found === undefined ? undefined : write(database, found, { ...found, ...change })
}

export const UPSERT_QUEUE = `
insert into perdure_queues (${QUEUE_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (name) do update set global_concurrency = excluded.global_concurrency,
  release_while_waiting = excluded.release_while_waiting, rate_limit = excluded.rate_limit,
  rate_period_ms = excluded.rate_period_ms, priority_enabled = excluded.priority_enabled,
  partitioned = excluded.partitioned, retention = excluded.retention, paused = excluded.paused,
  config_version = excluded.config_version, updated_at = excluded.updated_at`

function write(
  database: Database,
  before: QueueRecord | undefined,
  queue: NewQueue & { readonly paused: boolean },
): QueueRecord {
  const { name, globalConcurrency, rateLimit, partitioned, priorityEnabled, retention } = queue
  database
    .prepare(UPSERT_QUEUE)
    .run(
      name,
      globalConcurrency,
      queue.releaseWhileWaiting ? 1 : 0,
      rateLimit?.limit ?? null,
      rateLimit?.periodMs ?? null,
      priorityEnabled ? 1 : 0,
      partitioned ? 1 : 0,
      retention === null ? null : JSON.stringify(retention),
      queue.paused ? 1 : 0,
      queue.configVersion,
      database.clock.now(),
    )
  const laned = before?.partitioned ?? false
  if (laned !== partitioned || (before?.priorityEnabled ?? false) !== priorityEnabled) deriveRuns(database, queue)
  if (laned !== partitioned) deriveLanes(database, name, partitioned)
  else if (partitioned) reopenLanes(database, name)
  const written = findQueue(database, name)
  if (written === undefined) throw new Error(`queue ${name} was written and is not there`)
  return written
}

/** Of each index that holds runs of the queue which have not ended. */
export const COUNT_CLAIMABLE = `
select count(*) from perdure_runs indexed by perdure_runs_claimable
where status = 'ENQUEUED' and lane is not null and queue = ?`
export const COUNT_KEYLESS = `
select count(*) from perdure_runs indexed by perdure_runs_keyless
where status in ('ENQUEUED', 'DELAYED') and lane is null and queue = ? and status = ?`
export const COUNT_DELAYED = `
select count(*) from perdure_runs indexed by perdure_runs_delayed
where status = 'DELAYED' and lane is not null and queue = ?`
export const COUNT_ACTIVE = `
select count(*) filter (where status = 'PENDING'), count(*) filter (where status = 'WAITING')
from perdure_runs indexed by perdure_runs_active where queue = ? and status in ('PENDING', 'WAITING')`

export function queueStats(database: Database, name: string): QueueStats {
  const count = (sql: string, ...rest: readonly string[]): number =>
    number(database.prepare(sql).get(name, ...rest)?.[0])
  const keyless = count(COUNT_KEYLESS, 'ENQUEUED')
  const [pending, waiting] = database.prepare(COUNT_ACTIVE).get(name) ?? []
  return {
    enqueued: count(COUNT_CLAIMABLE) + keyless,
    delayed: count(COUNT_DELAYED) + count(COUNT_KEYLESS, 'DELAYED'),
    pending: number(pending),
    waiting: number(waiting),
    keyless,
  }
}
