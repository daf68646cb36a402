/** Why a run does not run, as far as the store knows, and what it would take. One statement, so one look. */
import { number, text, textOrNull, word } from '../columns.ts'
import type { Situation } from '../contract.ts'
import { QUEUE_COLUMNS, QUEUE_WIDTH, toQueue } from '../queue-row.ts'
import type { WaitRecord } from '../records.ts'
import { listOf, toLedger } from './claim/json.ts'
import type { Database } from './database.ts'
import { opensAfter } from './ledger.ts'
import { RUN_COLUMNS, RUN_WIDTH, toRun } from './runs.ts'
import { NOW } from './session.ts'

/** So many holders are named, and so many runs ahead are counted. */
const HOLDERS_NAMED = 10
const AHEAD_COUNTED = 1_000

/** Those in the lane of a run that count against its global limit, oldest first. */
const HOLDERS = `(
    select h.id, h.seq from perdure.runs h
    where h.queue <> '' and h.queue = r.queue and h.lane = r.lane and h.status in ('PENDING', 'WAITING')
      and (h.status = 'PENDING' or not q.release_while_waiting) and q.global_concurrency is not null)`

/** Enqueued runs of the lane that go first, definition by definition, as their index has them. */
const AHEAD = `(
    with recursive definition (name) as (
      select (select a.definition from perdure.runs a
        where a.status = 'ENQUEUED' and a.queue = r.queue and a.lane = r.lane order by a.definition limit 1)
      union all
      select (select a.definition from perdure.runs a
        where a.status = 'ENQUEUED' and a.queue = r.queue and a.lane = r.lane and a.definition > d.name
        order by a.definition limit 1)
      from definition d where d.name is not null)
    select count(*) from (
      select 1 from definition d cross join lateral (
        select 1 from perdure.runs a
        where a.status = 'ENQUEUED' and a.queue = r.queue and a.lane = r.lane and a.definition = d.name
          and (a.rank, a.seq) < (r.rank, r.seq)
        limit ${AHEAD_COUNTED}) a
      limit ${AHEAD_COUNTED}) a)`

const LEDGER = `(
    select json_build_array(
      (select s.number from perdure.starts s where s.queue = r.queue and s.lane = r.lane order by s.number limit 1),
      e.number, e.started_at, (
      select json_agg(o.started_at) from (
        select s.started_at from perdure.starts s
        where s.queue = r.queue and s.lane = r.lane and s.number > e.number - q.rate_limit
        order by s.number limit 1) o))
    from perdure.starts e where e.queue = r.queue and e.lane = r.lane order by e.number desc limit 1)`

export const SITUATION = `
select ${QUEUE_COLUMNS.replaceAll(/\w+/g, 'q.$&')}, ${RUN_COLUMNS}, ${NOW},
  (select count(*) from ${HOLDERS} h),
  (select json_agg(h.id order by h.seq) from (select * from ${HOLDERS} h order by h.seq limit ${HOLDERS_NAMED}) h),
  case when q.rate_limit is not null then ${LEDGER} end,
  case when r.status in ('ENQUEUED', 'DELAYED') then ${AHEAD} else 0 end,
  (select json_agg(json_build_array(w.type, w.position, w.key, w.state, w.payload) order by w.position)
    from perdure.waits w where w.run = r.seq)
from perdure.runs r left join perdure.queues q on q.name = r.queue
where r.id = $1`

export async function situation(database: Database, id: string): Promise<Situation | undefined> {
  const [row] = await database.read((session) => session.query(SITUATION, [id]))
  if (row === undefined) return undefined
  const at = (n: number): unknown => row[QUEUE_WIDTH + RUN_WIDTH + n]
  const run = toRun(row.slice(QUEUE_WIDTH))
  const queue = row[0] === null ? null : toQueue(row)
  const now = database.instant(at(0))
  const opensAt =
    run.lane === null ? 0 : opensAfter(queue?.rateLimit ?? null, toLedger(parsed(at(3))), { count: 0, at: now }, now)
  return {
    run,
    queue,
    active: number(at(1)),
    holders: listOf(parsed(at(2))).map(text),
    rateOpensAt: opensAt === 0 ? null : opensAt,
    ahead: number(at(4)),
    waits: listOf(parsed(at(5))).map((wait) => toWait(run.id, listOf(wait))),
  }
}

function parsed(json: unknown): unknown {
  return json === null ? null : JSON.parse(text(json))
}

const toState = word(['open', 'signalled', 'expired'] as const)

function toWait(runId: string, [type, at, name, state, payload]: readonly unknown[]): WaitRecord {
  const [position, key] = [number(at), text(name)]
  if (type === 'child') return { type, runId, position, childId: key }
  return { type: 'signal', runId, position, key, state: toState(state), payload: textOrNull(payload) }
}
