/**
 * Registered queues: their knobs, which hold for all processes.
 *
 * Each queue is written in a transaction of its own, so that none waits for one queue while it holds another. A change
 * takes the row FOR NO KEY UPDATE: claims of the queue wait for it, starts don't. Only where runs have to be placed anew
 * it takes the row FOR UPDATE: then it waits for the starts under way, and new ones wait for it. A queue that is not
 * there yet has no row to lock, so those who find none keep `UNREGISTERED` instead.
 */
import { number } from '../columns.ts'
import type { NewQueue, QueueChange, QueueStats } from '../contract.ts'
import { QUEUE_COLUMNS, toQueue } from '../queue-row.ts'
import type { QueueRecord } from '../records.ts'
import type { Database } from './database.ts'
import { deriveLanes, deriveRuns, reopenLanes } from './derive.ts'
import type { Transaction } from './session.ts'
import { Interference, NOW } from './session.ts'

export const ALL_QUEUES = `select ${QUEUE_COLUMNS} from perdure.queues order by name`

export async function allQueues(database: Database): Promise<readonly QueueRecord[]> {
  return (await database.read((session) => session.query(ALL_QUEUES))).map(toQueue)
}

/** Others may be at work in the queue for a moment. To place a million runs anew takes its time. */
const PATIENCE = { lockTimeoutMs: 5_000, answerWithinMs: 300_000 }

export async function registerQueues(database: Database, queues: readonly NewQueue[]): Promise<readonly QueueRecord[]> {
  const written: QueueRecord[] = []
  for (const queue of queues) {
    written.push(await database.write((transaction) => register(transaction, queue), PATIENCE))
  }
  return written
}

async function register(transaction: Transaction, queue: NewQueue): Promise<QueueRecord> {
  const found = await lockQueue(transaction, queue.name)
  if (found === undefined) return await insert(transaction, queue)
  if (found.configVersion > queue.configVersion) return found
  return await write(transaction, found, { ...queue, paused: found.paused })
}

export async function changeQueue(
  database: Database,
  name: string,
  change: QueueChange,
): Promise<QueueRecord | undefined> {
  return await database.write(async (transaction) => {
    const found = await lockQueue(transaction, name)
    return found === undefined ? undefined : await write(transaction, found, { ...found, ...change })
  }, PATIENCE)
}

export const LOCK_QUEUE = `select ${QUEUE_COLUMNS} from perdure.queues where name = $1 for no key update`

async function lockQueue(transaction: Transaction, name: string): Promise<QueueRecord | undefined> {
  const [row] = await transaction.query(LOCK_QUEUE, [name])
  return row === undefined ? undefined : toQueue(row)
}

/** The key of a lock on the name of a queue. */
const NAME_KEY = `pg_catalog.hashtextextended('perdure queue ' || $1::text, 0)`
/**
 * To be kept until the end of a transaction that gives runs to a queue, or claims some, and has found no such queue: it
 * looks again afterwards. So whoever registers the queue sees the runs.
 */
export const UNREGISTERED = `
select pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended('perdure queue ' || a.name, 0))
from (select distinct name from unnest($1::text[]) as a (name) order by name) a`
const LOCK_NAME = `select pg_catalog.pg_advisory_xact_lock(${NAME_KEY})`

export const INSERT_QUEUE = `
insert into perdure.queues (${QUEUE_COLUMNS}) values ($1, null, false, null, null, false, false, null, false, $2, 0)
on conflict do nothing returning ${QUEUE_COLUMNS}`

async function insert(transaction: Transaction, queue: NewQueue): Promise<QueueRecord> {
  await transaction.query(LOCK_NAME, [queue.name])
  const [row] = await transaction.query(INSERT_QUEUE, [queue.name, queue.configVersion])
  if (row === undefined) throw new Interference('a queue was registered')
  return await write(transaction, toQueue(row), { ...queue, paused: false })
}

export const LOCK_PLACES = 'select 1 from perdure.queues where name = $1 for update'
const READ_NOW = `select ${NOW}`
export const WRITE_QUEUE = `
update perdure.queues set global_concurrency = $2, release_while_waiting = $3, rate_limit = $4, rate_period_ms = $5,
  priority_enabled = $6, partitioned = $7, retention = $8, paused = $9, config_version = $10, updated_at = $11
where name = $1 returning ${QUEUE_COLUMNS}`

async function write(
  transaction: Transaction,
  before: QueueRecord,
  queue: NewQueue & { readonly paused: boolean },
): Promise<QueueRecord> {
  const { name, globalConcurrency, rateLimit, partitioned, priorityEnabled, retention } = queue
  const laned = before.partitioned
  const moves = laned !== partitioned || before.priorityEnabled !== priorityEnabled
  if (moves) await transaction.query(LOCK_PLACES, [name])
  const [clock] = await transaction.query(READ_NOW)
  const [row] = await transaction.query(WRITE_QUEUE, [
    ...[name, globalConcurrency, queue.releaseWhileWaiting, rateLimit?.limit ?? null, rateLimit?.periodMs ?? null],
    ...[priorityEnabled, partitioned, retention === null ? null : JSON.stringify(retention), queue.paused],
    ...[queue.configVersion, transaction.instant(clock?.[0])],
  ])
  if (row === undefined) throw new Interference('a queue has vanished')
  if (moves) await deriveRuns(transaction, before, queue)
  if (laned !== partitioned) await deriveLanes(transaction, name, partitioned)
  else if (partitioned) await reopenLanes(transaction, name)
  return toQueue(row)
}

/** Each count from the index that holds such runs alone. Only a partitioned queue has runs without a lane. */
export const STATS = `
with active as (
  select count(*) filter (where r.status = 'PENDING') as pending, count(*) filter (where r.status = 'WAITING') as waiting
  from perdure.runs r where r.queue <> '' and r.queue = $1 and r.status in ('PENDING', 'WAITING')),
keyless as (
  select count(*) filter (where r.status = 'ENQUEUED') as enqueued, count(*) filter (where r.status = 'DELAYED') as delayed
  from perdure.runs r
  where r.queue <> '' and r.queue = $1 and r.lane is null and r.status in ('ENQUEUED', 'DELAYED')
    and (select q.partitioned from perdure.queues q where q.name = $1))
select
  (select count(*) from perdure.runs r where r.status = 'ENQUEUED' and r.lane is not null and r.queue = $1),
  (select count(*) from perdure.runs r where r.status = 'DELAYED' and r.lane is not null and r.queue = $1),
  active.pending, active.waiting, keyless.enqueued, keyless.delayed
from active cross join keyless`

export async function queueStats(database: Database, name: string): Promise<QueueStats> {
  const [row] = await database.read((session) => session.query(STATS, [name]))
  const [enqueued = 0, delayed = 0, pending = 0, waiting = 0, keyless = 0, keylessDelayed = 0] = row?.map(number) ?? []
  return { enqueued: enqueued + keyless, delayed: delayed + keylessDelayed, pending, waiting, keyless }
}
