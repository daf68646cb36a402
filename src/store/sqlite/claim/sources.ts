/** The sources of a claim as their queues are now, all in one statement. */
import type { EpochMs } from '../../../core/clock.ts'
import { flag, number, numberOrNull, text } from '../../columns.ts'
import type { ClaimRequest, ClaimSource } from '../../contract.ts'
import { QUEUE_COLUMNS, QUEUE_WIDTH, toQueue } from '../../queue-row.ts'
import type { QueueRecord } from '../../records.ts'
import type { Database } from '../database.ts'
import type { Row } from '../driver.ts'
import { opensAfter } from '../ledger.ts'
import { VERSIONS } from '../versions.ts'
import { ends } from './held.ts'

/** A source as its queue is now. */
export interface SurveyedSource {
  readonly source: ClaimSource
  /** null: the internal queue, or one that is not registered. */
  readonly queue: QueueRecord | null
  readonly paused: boolean
  /** Its lanes have limits of their own (lanes.ts); otherwise all of it is lane ''. */
  readonly laned: boolean
  /** Of lane '': whether its global limit lets a run start, and until when its rate limit doesn't (null: it does). */
  readonly globalOpen: boolean
  readonly rateOpensAt: EpochMs | null
}

export interface Sources {
  readonly sources: readonly SurveyedSource[]
  /** Some run is held under one of the tokens already, or under another of their range. */
  readonly held: boolean
  /** JSON texts: the versions that the claimant takes, and which owners have their fill of some lane. */
  readonly versions: string
  readonly owners: string
}

export const SOURCES = `
with recursive ${VERSIONS},
owners (owner) as (
  select '' union all
  select (select l.full_for from perdure_lanes l indexed by perdure_lanes_full
    where l.full_for <> '' and l.full_for > owners.owner order by l.full_for limit 1)
  from owners where owners.owner is not null)
select ${QUEUE_COLUMNS},
  case when q.partitioned or q.global_concurrency is null then 0 when q.release_while_waiting then (
    select count(*) from (select 1 from perdure_runs r indexed by perdure_runs_active
      where r.queue = q.name and r.lane = '' and r.status = 'PENDING' and r.status in ('PENDING', 'WAITING')
      limit (select max(global_concurrency) from perdure_queues)))
  else (
    select count(*) from (select 1 from perdure_runs r indexed by perdure_runs_active
      where r.queue = q.name and r.lane = '' and r.status in ('PENDING', 'WAITING')
      limit (select max(global_concurrency) from perdure_queues))) end,
  case when q.partitioned or q.rate_limit is null then null else (
    select s.started_at from perdure_starts s where s.queue = q.name and s.lane = '' and s.number =
      (select max(l.number) from perdure_starts l where l.queue = q.name and l.lane = '') + 1 - q.rate_limit) end,
  case when q.partitioned or q.rate_limit is null then null else (
    select s.started_at from perdure_starts s where s.queue = q.name and s.lane = ''
    order by s.number desc limit 1) end,
  case when ? then (select json_group_array(version) from versions) end,
  (select json_group_array(owner) from owners where owner is not null),
  exists (select 1 from perdure_runs r indexed by perdure_runs_claims
    where r.status = 'PENDING' and r.owner = ? and r.token between ? and ?),
  asked.key
from json_each(?) asked left join perdure_queues q on q.name = asked.value`

const NO_SOURCES: Row = [null, '[]', 0]

export function findSources(database: Database, request: ClaimRequest, now: EpochMs): Sources {
  const { version, owner, tokens } = request
  const names = JSON.stringify(request.sources.map(({ queue }) => queue))
  const rows = database.prepare(SOURCES).all(version === null ? 1 : 0, owner, ...ends(tokens), names)
  const sources = rows.flatMap((row) => {
    const source = request.sources[number(row[QUEUE_WIDTH + 6])]
    return source === undefined ? [] : [toSource(source, row, now)]
  })
  const [versions, owners, held] = rows[0]?.slice(QUEUE_WIDTH + 3) ?? NO_SOURCES
  return {
    sources,
    held: flag(held),
    // null stands for runs that are bound to none.
    versions: version === null ? text(versions ?? '[]') : JSON.stringify([null, version]),
    owners: text(owners),
  }
}

function toSource(source: ClaimSource, row: Row, now: EpochMs): SurveyedSource {
  const queue = row[0] === null ? null : toQueue(row)
  const active = number(row[QUEUE_WIDTH])
  const gate = numberOrNull(row[QUEUE_WIDTH + 1])
  const newest = numberOrNull(row[QUEUE_WIDTH + 2])
  // Starts in the future are dated to now by whoever writes next: then it is seen when the lane opens.
  const closed = queue !== null && queue.rateLimit !== null && gate !== null && newest !== null && newest <= now
  return {
    source,
    queue,
    paused: queue?.paused ?? false,
    laned: queue?.partitioned ?? false,
    globalOpen: queue === null || queue.globalConcurrency === null || active < queue.globalConcurrency,
    rateOpensAt: closed && queue.rateLimit !== null ? opensAfter(queue.rateLimit, gate, now) : null,
  }
}

/** This process has room, in all and (should it take lanes for what the queue as it is now doesn't have) in lane ''. */
export function hasRoom({ room, lanes }: ClaimSource): boolean {
  return room > 0 && (lanes === null || (lanes.running.get('') ?? 0) < lanes.limit)
}

export function hasRateLimit(queue: QueueRecord | null): boolean {
  return queue !== null && queue.rateLimit !== null
}
