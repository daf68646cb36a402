/** Lists of runs, the newest first, each in the order of an index. */
import type { ListRequest } from '../contract.ts'
import type { RunRecord, RunStatus } from '../records.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'
import { RUN_COLUMNS, toRun } from './runs.ts'

export const LIST_ALL = `
select ${RUN_COLUMNS} from perdure_runs where seq < ? order by seq desc limit ?`
export const LIST_OF_DEFINITION = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_definitions
where seq < ? and definition = ? and (? is null or queue = ?) order by seq desc limit ?`
export const LIST_OF_QUEUE = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_queues
where seq < ? and queue = ? order by seq desc limit ?`
/** Claims are few at any time: sorting them costs less than an index that every claim would write. */
export const LIST_PENDING = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and seq < ? and (? is null or definition = ?) and (? is null or queue = ?)
order by seq desc limit ?`
export const LIST_RESTING = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_resting
where seq < ? and (? is null or definition = ?) and (? is null or queue = ?)
  and status = ? and status not in ('SUCCESS', 'PENDING')
order by seq desc limit ?`
export const LIST_SUCCESS = `
select ${RUN_COLUMNS} from perdure_runs where status = 'SUCCESS' and seq < ? order by seq desc limit ?`
export const LIST_SUCCESS_OF_DEFINITION = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_definitions
where status = 'SUCCESS' and seq < ? and definition = ? and (? is null or queue = ?) order by seq desc limit ?`
export const LIST_SUCCESS_OF_QUEUE = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_queues
where status = 'SUCCESS' and seq < ? and queue = ? order by seq desc limit ?`

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
  if (request.status === undefined) return rowsOfAnyStatus(database, filter).map(toRun)
  return [...new Set(request.status)]
    .flatMap((status) => rowsOf(database, status, filter))
    .map(toRun)
    .sort((a, b) => b.seq - a.seq)
    .slice(0, filter.limit)
}

function rowsOfAnyStatus(database: Database, { definition, queue, before, limit }: Filter): readonly Row[] {
  if (definition !== null) {
    return database.prepare(LIST_OF_DEFINITION).all(before, definition, queue, queue, limit)
  }
  if (queue !== null) return database.prepare(LIST_OF_QUEUE).all(before, queue, limit)
  return database.prepare(LIST_ALL).all(before, limit)
}

function rowsOf(database: Database, status: RunStatus, filter: Filter): readonly Row[] {
  const { definition, queue, before, limit } = filter
  if (status === 'PENDING') {
    return database.prepare(LIST_PENDING).all(before, definition, definition, queue, queue, limit)
  }
  if (status !== 'SUCCESS') {
    return database.prepare(LIST_RESTING).all(before, definition, definition, queue, queue, status, limit)
  }
  if (definition !== null) {
    return database.prepare(LIST_SUCCESS_OF_DEFINITION).all(before, definition, queue, queue, limit)
  }
  if (queue !== null) return database.prepare(LIST_SUCCESS_OF_QUEUE).all(before, queue, limit)
  return database.prepare(LIST_SUCCESS).all(before, limit)
}
