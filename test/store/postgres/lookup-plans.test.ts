/**
 * The statements of reads, leases and retention find their rows by an index, on a table full of finished runs, with
 * plans that are made without a look at the values.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import * as blocked from '../../../src/store/postgres/blocked.ts'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import * as kv from '../../../src/store/postgres/kv.ts'
import * as leases from '../../../src/store/postgres/leases.ts'
import * as listing from '../../../src/store/postgres/listing.ts'
import { checkSettings } from '../../../src/store/postgres/options.ts'
import * as processes from '../../../src/store/postgres/processes.ts'
import * as reads from '../../../src/store/postgres/reads.ts'
import * as receipts from '../../../src/store/postgres/receipts.ts'
import * as reclaim from '../../../src/store/postgres/reclaim.ts'
import * as retention from '../../../src/store/postgres/retention.ts'
import * as transact from '../../../src/store/postgres/transact.ts'
import * as transactRecord from '../../../src/store/postgres/transact-record.ts'
import { freshSchema, run } from './server.ts'

const FILL = `
insert into perdure.runs (seq, id, definition, queue, priority, lane, rank, status, epoch, deliveries, attempt, crashes,
  max_recoveries, cancel_requested, created_at, start_id, token, owner, lease_until, started_at, ended_at)
select n, 'run ' || n, 'definition ' || n % 5, case when n % 3 > 0 then 'queue ' || n % 3 else '' end, 0, '', 0, status,
  0, 1, 1, 0, 50, false, 1, 's', 'token ' || n, 'owner ' || n % 7, case when status = 'PENDING' then n end, 1,
  case when status = 'SUCCESS' then n end
from (
  select n, case when n % 100 = 0 then 'PENDING' when n % 100 = 1 then 'ENQUEUED' else 'SUCCESS' end as status
  from generate_series(1, 50000) n) n;
insert into perdure.inputs select seq, '"in"' from perdure.runs;
insert into perdure.endings select seq, '"out"', null from perdure.runs where ended_at is not null;
insert into perdure.checkpoints
  select seq, 0, 'outcome', 0, 'step', 'name', false, '1', 1, 1, null, 1, 1 from perdure.runs;
insert into perdure.past_checkpoints select run, 0, seq, type, position, verb, name, failed, value, calls, delivered,
  notes, recorded_at, attempts from perdure.checkpoints;
insert into perdure.waits select seq, 0, 'signal', 'key', 'open', null from perdure.runs;
insert into perdure.attempts select seq, 0, 0, 1, 'crashed', 'o', 1, 1, 'crashed' from perdure.runs;
insert into perdure.kv select 'key ' || n, '1', '#' from generate_series(1, 50000) n;
insert into perdure.receipts select 'command ' || n, '{}', n from generate_series(1, 50000) n;
analyze`

const MODULES = [...[kv, leases, listing, reads, receipts, reclaim, retention, blocked, transact, transactRecord]].map(
  (it) => Object.entries(it),
)
const STATEMENTS = [...MODULES.flat(), ['REMOVE', processes.REMOVE] as const].flatMap(([name, sql]) =>
  typeof sql === 'string' ? [[name, sql] as const] : [],
)

/** Lists that a statement is given or has narrowed down itself, and tables that are small by nature. */
const WALKED = /Seq Scan on (processes|queues)/

describe('a statement finds its rows by an index', () => {
  let database: Database
  beforeAll(async () => {
    const { url, schema, destroy } = await freshSchema()
    database = await Database.open({ settings: checkSettings(url, { schema }), clock: new DatabaseClock() })
    for (const statement of FILL.split(';')) await run(database.render(statement))
    return async () => {
      await database.close()
      await destroy()
    }
  })

  it.each(STATEMENTS)('%s', async (_, sql) => {
    const { rows } = await run(`explain (generic_plan, costs off) ${database.render(sql)}`)
    const plan = rows.map((row) => String(row['QUERY PLAN']))
    const scans = plan.filter((line) => line.includes('Seq Scan') && !WALKED.test(line))
    expect(scans, plan.join('\n')).toEqual([])
  })
})
