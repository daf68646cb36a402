/**
 * Lists of runs, the newest first. What a list holds is found as places in indexes, each in descending order where the
 * index has one; only the rows that are answered are read.
 */

import { number, textOrNull } from '../columns.ts'
import type { ListRequest } from '../contract.ts'
import type { RunRecord, RunStatus } from '../records.ts'
import type { Database } from './database.ts'
import { runAt } from './runs.ts'

export const LIST_ALL = 'select seq from perdure_runs where seq < ? order by seq desc limit ?'
export const LIST_OF = `
select seq from perdure_runs indexed by perdure_runs_listed
where definition = ? and queue is ? and seq < ? order by seq desc limit ?`
export const LIST_SUCCESS = `
select seq from perdure_runs where status = 'SUCCESS' and seq < ? order by seq desc limit ?`
export const LIST_SUCCESS_OF = `
select seq from perdure_runs indexed by perdure_runs_listed
where status = 'SUCCESS' and definition = ? and queue is ? and seq < ? order by seq desc limit ?`
/** Claims are few at any time: sorting them costs less than an index that every claim would write. */
export const LIST_PENDING = `
select seq from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and seq < ? and (? is null or definition = ?) and (? is null or queue = ?)
order by seq desc limit ?`
export const LIST_RESTING = `
select seq from perdure_runs indexed by perdure_runs_resting
where seq < ? and (? is null or definition = ?) and (? is null or queue = ?)
  and status = ? and status <> 'ENQUEUED' and status <> 'PENDING' and status <> 'SUCCESS'
order by seq desc limit ?`
/** A long backlog is among the newest runs, as a rule. */
export const LIST_NEW_ENQUEUED = `
select seq from (
  select seq, status, definition, queue from perdure_runs where seq < ? order by seq desc limit 2000)
where status = 'ENQUEUED' and (? is null or definition = ?) and (? is null or queue = ?) order by seq desc limit ?`
/** Walked and sorted, where the backlog is short or old. */
export const LIST_CLAIMABLE = `
select seq from perdure_runs indexed by perdure_runs_claimable
where status = 'ENQUEUED' and lane is not null and seq < ? and (? is null or definition = ?)
  and (? is null or queue = ?) order by seq desc limit ?`
export const LIST_KEYLESS = `
select seq from perdure_runs indexed by perdure_runs_keyless
where lane is null and status in ('ENQUEUED', 'DELAYED') and status = 'ENQUEUED' and seq < ?
  and (? is null or definition = ?) and (? is null or queue = ?) order by seq desc limit ?`

interface Filter {
  readonly definition: string | null
  readonly queue: string | null
  readonly before: number
  readonly limit: number
}

export function listRuns(database: Database, request: ListRequest): readonly RunRecord[] {
  const filter: Filter = {
    definition: request.definition ?? null,
    queue: request.queue ?? null,
    before: request.beforeSeq ?? Number.MAX_SAFE_INTEGER,
    limit: request.limit,
  }
  const places =
    request.status === undefined
      ? listed(database, filter, { all: LIST_ALL, of: LIST_OF })
      : [...new Set(request.status)].flatMap((status) => placesOf(database, status, filter))
  return newest(places, filter).map((seq) => runAt(database, seq))
}

const newest = (places: readonly number[], { limit }: Filter): readonly number[] =>
  places.toSorted((a, b) => b - a).slice(0, limit)

function placesOf(database: Database, status: RunStatus, filter: Filter): readonly number[] {
  if (status === 'PENDING') return filtered(database, LIST_PENDING, filter)
  if (status === 'ENQUEUED') return enqueued(database, filter)
  if (status === 'SUCCESS') return listed(database, filter, { all: LIST_SUCCESS, of: LIST_SUCCESS_OF })
  const { definition, queue, before, limit } = filter
  const rows = database.prepare(LIST_RESTING).all(before, definition, definition, queue, queue, status, limit)
  return rows.map((row) => number(row[0]))
}

function filtered(database: Database, sql: string, { definition, queue, before, limit }: Filter): readonly number[] {
  const rows = database.prepare(sql).all(before, definition, definition, queue, queue, limit)
  return rows.map((row) => number(row[0]))
}

function enqueued(database: Database, filter: Filter): readonly number[] {
  const recent = filtered(database, LIST_NEW_ENQUEUED, filter)
  if (recent.length === filter.limit) return recent
  return [...filtered(database, LIST_CLAIMABLE, filter), ...filtered(database, LIST_KEYLESS, filter)]
}

/** In the order of the index where it has one: that of each definition in each queue. */
function listed(
  database: Database,
  filter: Filter,
  { all, of }: { readonly all: string; readonly of: string },
): readonly number[] {
  const { definition, queue, before, limit } = filter
  const rows =
    definition === null && queue === null
      ? database.prepare(all).all(before, limit)
      : pairs(database, filter).flatMap((pair) => database.prepare(of).all(pair.definition, pair.queue, before, limit))
  return rows.map((row) => number(row[0]))
}

interface Pair {
  readonly definition: string
  readonly queue: string | null
}

function pairs(database: Database, { definition, queue }: Filter): readonly Pair[] {
  const definitions = definition === null ? allDefinitions(database) : [definition]
  return definitions.flatMap((name) => {
    const queues = queue === null ? queuesOf(database, name) : [queue]
    return queues.map((one) => ({ definition: name, queue: one }))
  })
}

export const NEXT_DEFINITION = `
select definition from perdure_runs indexed by perdure_runs_listed where definition > ? order by definition limit 1`

function allDefinitions(database: Database): readonly string[] {
  const next = (after: string): string | null => textOrNull(database.prepare(NEXT_DEFINITION).get(after)?.[0] ?? null)
  const definitions: string[] = []
  for (let name = next(''); name !== null; name = next(name)) definitions.push(name)
  return definitions
}

export const NEXT_QUEUE = `
select queue from perdure_runs indexed by perdure_runs_listed
where definition = ? and queue > ? order by queue limit 1`
export const ANY_ON_INTERNAL = `
select 1 from perdure_runs indexed by perdure_runs_listed where definition = ? and queue is null limit 1`

/** The queues that have, or have had, runs of a definition; null: the internal one. */
export function queuesOf(database: Database, definition: string): readonly (string | null)[] {
  const queues: (string | null)[] = database.prepare(ANY_ON_INTERNAL).get(definition) === undefined ? [] : [null]
  const next = (after: string): string | null =>
    textOrNull(database.prepare(NEXT_QUEUE).get(definition, after)?.[0] ?? null)
  for (let queue = next(''); queue !== null; queue = next(queue)) queues.push(queue)
  return queues
}
