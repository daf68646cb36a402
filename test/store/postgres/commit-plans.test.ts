/**
 * The statements of the commit lane find their rows by an index, with plans that are made without a look at the values: on
 * a table full of finished runs, and on tables that were just created, whose plans live on while they grow.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'
import * as load from '../../../src/store/postgres/commit/load.ts'
import * as lock from '../../../src/store/postgres/commit/lock.ts'
import * as history from '../../../src/store/postgres/commit/write-history.ts'
import * as runs from '../../../src/store/postgres/commit/write-runs.ts'
import * as starts from '../../../src/store/postgres/commit/write-starts.ts'
import * as values from '../../../src/store/postgres/commit/write-values.ts'
import * as waits from '../../../src/store/postgres/commit/write-waits.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import { checkSettings } from '../../../src/store/postgres/options.ts'
import { freshSchema, run } from './server.ts'

const FILL = `
insert into perdure.runs (seq, id, definition, queue, priority, lane, rank, status, epoch, deliveries, attempt, crashes,
  max_recoveries, cancel_requested, created_at, start_id, token, owner, lease_until, started_at, ended_at, dedup_id)
select n, 'run ' || n, 'definition ' || n % 5, 'queue', 0, '', 0, status, 0, 1, 1, 0, 50, false, 1, 's', 'token ' || n,
  'owner', case when status = 'PENDING' then n end, 1, case when status = 'SUCCESS' then n end, 'd' || n
from (select n, case when n % 100 = 0 then 'PENDING' else 'SUCCESS' end as status from generate_series(1, 50000) n) n;
insert into perdure.inputs select seq, '"in"' from perdure.runs;
insert into perdure.endings select seq, '"out"', null from perdure.runs where ended_at is not null;
insert into perdure.checkpoints
  select seq, 0, 'outcome', 0, 'step', 'name', false, '1', 1, 1, null, 1, 1 from perdure.runs;
insert into perdure.waits select seq, 0, 'signal', 'key ' || seq, 'open', null from perdure.runs;
insert into perdure.attempts select seq, 0, 0, 1, 'crashed', 'o', 1, 1, 'crashed' from perdure.runs;
insert into perdure.kv select 'key ' || n, '1', '#' from generate_series(1, 50000) n;
insert into perdure.signals select 'key ' || n, '1' from generate_series(1, 50000) n;
insert into perdure.receipts select 'command ' || n, '{}', n from generate_series(1, 50000) n;
analyze`

const STATEMENTS = [lock, load, history, runs, starts, values, waits]
  .flatMap((module) => Object.entries(module))
  .flatMap(([name, sql]) => (typeof sql === 'string' ? [[name, sql] as const] : []))

/** Small by nature. */
const WALKED = /Seq Scan on queues/

describe.each([
  ['of a table full of finished runs', FILL, 'on'],
  // As every transaction of the store has it: PostgreSQL takes a table that it knows nothing of for a small one.
  ['of a table that was just created', 'select 1', 'off'],
])('a statement finds its rows by an index, %s', (_, fill, seqScans) => {
  let database: Database
  beforeAll(async () => {
    const { url, schema, destroy } = await freshSchema()
    database = await Database.open({ settings: checkSettings(url, { schema }), clock: new DatabaseClock() })
    for (const statement of fill.split(';')) await run(database.render(statement))
    return async () => {
      await database.close()
      await destroy()
    }
  })

  it.each(STATEMENTS)('%s', async (_name, sql) => {
    const explain = `explain (generic_plan, costs off) ${database.render(sql)}`
    const results = [await run(`begin; set local enable_seqscan = ${seqScans}; ${explain}; rollback`)].flat()
    const plan = results.flatMap(({ rows }) => rows.map((row) => String(row['QUERY PLAN'])))
    expect(plan.length).toBeGreaterThan(0)
    const scans = plan.filter((line) => line.includes('Seq Scan') && !WALKED.test(line))
    expect(scans, plan.join('\n')).toEqual([])
  })
})
