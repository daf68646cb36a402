/**
 * Lists of runs, the newest first, each by one statement. Runs of one definition, queue and status stand together in an
 * index (`runs_listed`), in order of `seq`: of each such list that the filter admits the newest are read, and of those
 * the newest of all answered, so that the cost grows with the number of lists, not with the number of runs.
 */
import type { ListRequest } from '../contract.ts'
import { RUN_STATUSES, type RunRecord } from '../records.ts'
import type { Database } from './database.ts'
import { RUN_COLUMNS, toRun } from './runs.ts'

export const LIST_ALL = `
select ${RUN_COLUMNS} from perdure.runs r where r.seq < $1 order by r.seq desc limit $2`

/**
 * $1, $2: the definition and the queue; null: any. The names that there are, each the next in the index. Compared as
 * rows, no other index has what the newest are asked by: one by `seq` alone might have to be walked to its end.
 */
export const LIST = `
with recursive definitions (name) as (
  select coalesce($1, (select definition from perdure.runs order by definition limit 1)) collate "C"
  union all
  select (select definition from perdure.runs where definition > d.name order by definition limit 1)
  from definitions d where $1 is null and d.name is not null),
pairs (definition, queue) as (
  select d.name, coalesce($2,
    (select queue from perdure.runs where definition = d.name order by queue limit 1)) collate "C"
  from definitions d where d.name is not null
  union all
  select p.definition,
    (select queue from perdure.runs where definition = p.definition and queue > p.queue order by queue limit 1)
  from pairs p where $2 is null and p.queue is not null),
newest (seq) as (
  select l.seq from pairs p cross join unnest($3::text[]) as asked (status) cross join lateral (
    select seq from perdure.runs
    where (definition, queue, status, seq) < (p.definition, p.queue, asked.status, $4)
      and (definition, queue, status, seq) > (p.definition, p.queue, asked.status, -1)
    order by definition desc, queue desc, status desc, seq desc limit $5) l
  where p.queue is not null order by l.seq desc limit $5)
select ${RUN_COLUMNS} from newest
cross join lateral (select * from perdure.runs where seq = newest.seq offset 0) r order by r.seq desc`

export async function list(database: Database, request: ListRequest): Promise<readonly RunRecord[]> {
  const { status, definition = null, queue = null, limit, beforeSeq = Number.MAX_SAFE_INTEGER } = request
  const everything = status === undefined && definition === null && queue === null
  const rows = await database.snapshot((session) =>
    everything
      ? session.query(LIST_ALL, [beforeSeq, limit])
      : session.query(LIST, [definition, queue, [...new Set(status ?? RUN_STATUSES)], beforeSeq, limit]),
  )
  return rows.map(toRun)
}
