/**
 * The statements of claims and queues find their rows by an index, on tables full of runs and lanes that are of no
 * interest, with plans that are made without a look at the values, whether the tables have been analyzed or not.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import * as held from '../../../src/store/postgres/claim/held.ts'
import * as pick from '../../../src/store/postgres/claim/pick.ts'
import * as promote from '../../../src/store/postgres/claim/promote.ts'
import * as survey from '../../../src/store/postgres/claim/survey-sql.ts'
import * as take from '../../../src/store/postgres/claim/take.ts'
import * as traces from '../../../src/store/postgres/claim/traces.ts'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import * as lanes from '../../../src/store/postgres/lanes.ts'
import * as ledger from '../../../src/store/postgres/ledger.ts'
import { checkSettings } from '../../../src/store/postgres/options.ts'
import * as situation from '../../../src/store/postgres/situation.ts'
import { freshSchema, run } from './server.ts'

const FILL = `
insert into perdure.queues select 'queue ' || n, 1, false, 1, 1000, false, n = 1, null, false, 0, 0
  from generate_series(1, 2) n;
insert into perdure.runs (seq, id, definition, queue, priority, partition_key, lane, rank, status, epoch, deliveries,
  attempt, crashes, max_recoveries, cancel_requested, created_at, start_id, token, owner, lease_until, started_at, due_at,
  ended_at)
select n, 'run ' || n, 'definition ' || n % 5, case when n % 3 > 0 then 'queue ' || n % 3 else '' end, 0, 'key',
  case when n % 3 = 1 then 'lane ' || n % 7000 else '' end, 0, status, 0, 1, 1, 0, 50, false, 1, 's',
  'token ' || n, 'owner ' || n % 7, case when status = 'PENDING' then n end, 1,
  case when status in ('WAITING', 'DELAYED') then n end, case when status = 'SUCCESS' then n end
from (
  select n, (array['PENDING', 'WAITING', 'DELAYED', 'ENQUEUED', 'ENQUEUED', 'SUCCESS', 'SUCCESS', 'SUCCESS'])[1 + n % 8]
    as status
  from generate_series(1, 60000) n) n;
insert into perdure.inputs select seq, '"in"' from perdure.runs;
insert into perdure.lanes select distinct r.queue, r.lane, r.definition, '', r.seq % 100,
    case r.seq % 2 when 0 then 0 when 1 then r.seq end
  from perdure.runs r where r.queue = 'queue 1' and r.status = 'ENQUEUED' on conflict do nothing;
insert into perdure.lanes select 'queue 2', 'lane ' || n, 'definition 1', '', n, null from generate_series(1, 20000) n;
insert into perdure.starts select 'queue 1', 'lane ' || n % 7000, n, n from generate_series(1, 30000) n;
insert into perdure.waits select seq, 0, 'signal', 'key', 'open', null from perdure.runs`

const MODULES = [held, pick, promote, survey, take, traces, lanes, ledger, situation].map((it) => Object.entries(it))
const STATEMENTS = [...MODULES.flat()].flatMap(([name, sql]) =>
  typeof sql === 'string' && sql.includes('perdure.') && /^\s*(with|select|insert|update|delete)\b/.test(sql)
    ? [[name, sql] as const]
    : [],
)

/** Queues are few. */
const WALKED = /Seq Scan on queues/

let database: Database

async function scansOf(sql: string): Promise<readonly string[]> {
  const { rows } = await run(`explain (generic_plan, costs off) ${database.render(sql)}`)
  const plan = rows.map((row) => String(row['QUERY PLAN']))
  return plan
    .filter((line) => line.includes('Seq Scan') && !WALKED.test(line))
    .concat(plan.filter((line) => line.includes('hashed SubPlan')))
}

describe('a statement finds its rows by an index', () => {
  beforeAll(async () => {
    const { url, schema, destroy } = await freshSchema()
    database = await Database.open({ settings: checkSettings(url, { schema }), clock: new DatabaseClock() })
    for (const statement of FILL.split(';')) await run(database.render(statement))
    return async () => {
      await database.close()
      await destroy()
    }
  })

  it.each(STATEMENTS)('%s, on tables that were not analyzed', async (_, sql) => {
    expect(await scansOf(sql)).toEqual([])
  })

  it('and on analyzed ones', async () => {
    for (const table of ['runs', 'inputs', 'lanes', 'starts', 'waits', 'queues']) {
      await run(database.render(`analyze perdure.${table}`))
    }
    for (const [name, sql] of STATEMENTS) expect(await scansOf(sql), name).toEqual([])
  })
})
