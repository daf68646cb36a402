/**
 * Each hot statement finds its rows by a key or an index made for it, on a table full of finished runs and of a
 * backlog of other definitions: no scan and no sorting, whether SQLite has statistics or not.
 */
import { describe, expect, it } from 'vitest'
import * as apply from '../../../src/store/sqlite/apply.ts'
import * as attempts from '../../../src/store/sqlite/attempts.ts'
import * as checkpoints from '../../../src/store/sqlite/checkpoints.ts'
import * as held from '../../../src/store/sqlite/claim/held.ts'
import * as lists from '../../../src/store/sqlite/claim/lists.ts'
import * as nextInstant from '../../../src/store/sqlite/claim/next-instant.ts'
import * as promote from '../../../src/store/sqlite/claim/promote.ts'
import * as resumes from '../../../src/store/sqlite/claim/resumes.ts'
import * as room from '../../../src/store/sqlite/claim/room.ts'
import * as sources from '../../../src/store/sqlite/claim/sources.ts'
import * as starts from '../../../src/store/sqlite/claim/starts.ts'
import * as traces from '../../../src/store/sqlite/claim/traces.ts'
import * as turns from '../../../src/store/sqlite/claim/turns.ts'
import * as deliveries from '../../../src/store/sqlite/deliveries.ts'
import * as derive from '../../../src/store/sqlite/derive.ts'
import * as enqueue from '../../../src/store/sqlite/enqueue.ts'
import * as kv from '../../../src/store/sqlite/kv.ts'
import * as lanes from '../../../src/store/sqlite/lanes.ts'
import * as leases from '../../../src/store/sqlite/leases.ts'
import * as ledger from '../../../src/store/sqlite/ledger.ts'
import * as listing from '../../../src/store/sqlite/listing.ts'
import * as processes from '../../../src/store/sqlite/processes.ts'
import * as queues from '../../../src/store/sqlite/queues.ts'
import * as receipts from '../../../src/store/sqlite/receipts.ts'
import * as retention from '../../../src/store/sqlite/retention.ts'
import * as runs from '../../../src/store/sqlite/runs.ts'
import * as situation from '../../../src/store/sqlite/situation.ts'
import * as versions from '../../../src/store/sqlite/versions.ts'
import * as waits from '../../../src/store/sqlite/waits.ts'
import { connect, freshPath, openStore } from './files.ts'

const MODULES = [apply, attempts, checkpoints, held, lists, nextInstant, promote, resumes, room, starts, sources]
const MORE_MODULES = [
  traces,
  turns,
  deliveries,
  derive,
  enqueue,
  kv,
  lanes,
  leases,
  ledger,
  listing,
  processes,
  queues,
  receipts,
  retention,
  runs,
]
const EXPORTS = [...MODULES, ...MORE_MODULES, situation, versions, waits].flatMap((module): [string, unknown][] =>
  Object.entries(module),
)
const STATEMENTS = EXPORTS.flatMap(([statement, exported]) => {
  const all: readonly unknown[] = Array.isArray(exported) ? exported : [exported]
  return all.flatMap((sql) =>
    typeof sql === 'string' && /^\s*(with|select|insert|update|delete)/.test(sql) ? [{ statement, sql }] : [],
  )
})

/** Walked from end to end: lists that a claim was given or has made, and what a statement has narrowed down before. */
const WALKED = /: SCAN (s|o|d|v|asked|list|versions|owners|json_each|CONSTANT ROW|\(subquery-\d+\))( VIRTUAL TABLE.*)?$/
/**
 * Sorted or walked, as they are few: live claims; the newest runs; receipts, oldest first up to a limit; all lanes of a
 * queue. Or as a backlog that is claimed by other orders is listed by this one: LIST_CLAIMABLE, LIST_KEYLESS.
 */
const FEW =
  /^(LIST_PENDING|LIST_NEW_ENQUEUED|LIST_CLAIMABLE|LIST_KEYLESS|EXPIRED|NEXT_EXPIRY|HOLDERS|DELETE_RECEIPTS|OLDEST_RECEIPT|DERIVE_STARTS): /

const FILL = `
with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000)
insert into perdure_runs (id, definition, kind, queue, lane, version, status, input_hash, due_at, token, owner,
  lease_until, epoch, deliveries, attempt, crashes, max_recoveries, cancel_requested, created_at, ended_at, start_id)
select 'run ' || i, case when i % 2 = 0 then 'convert' else 'other ' || (i % 7) end, 'workflow',
  case when i % 3 > 0 then 'queue ' || (i % 5) end, case when i % 5 < 2 then 'lane ' || (i % 500) else '' end,
  case when i % 4 = 0 then 'v' || (i % 3) end,
  case when i % 10 = 1 then 'ENQUEUED' when i % 100 = 2 then 'WAITING' when i % 1000 = 4 then 'PENDING'
    when i % 100 = 5 then 'DELAYED' when i % 100 = 6 then 'ERROR' else 'SUCCESS' end,
  'hash', case when i % 100 in (2, 5) then i end, 'token ' || i, 'owner ' || (i % 3), case when i % 1000 = 4 then i end,
  0, 1, 1, 0, 50, 0, i, case when i % 10 = 1 or i % 100 in (2, 5) or i % 1000 = 4 then null else i end, 'start'
from n;
insert into perdure_lanes (queue, lane, work, definition, version, place, run, ready_at, full_for)
select queue, lane, 'start', definition, coalesce('=' || version, ''), min(seq), 0, 0, ''
from perdure_runs where status = 'ENQUEUED' and queue is not null group by queue, lane, definition, version;
insert into perdure_starts (queue, lane, number, started_at) select queue, lane, seq, seq from perdure_runs
where queue is not null;
insert into perdure_kv (key, value, hash) select id, '1', 'hash' from perdure_runs;
insert into perdure_receipts (command_id, outcome, given_at) select id, '{}', seq from perdure_runs;
insert into perdure_waits (run, position, type, key, state) select seq, 0, 'signal', id, 'open' from perdure_runs
where status = 'WAITING';
insert into perdure_checkpoints (run, seq, type, position, verb, name, failed, calls, delivered, recorded_at, attempts)
select seq, 0, 'outcome', 0, 'step', '', 0, 1, 0, 0, 1 from perdure_runs;
`

describe.each(['without statistics', 'with statistics'])('plans %s', (name) => {
  it('use keys and indexes', async () => {
    const path = freshPath()
    await openStore(path)
    const database = await connect(path)
    database.exec(FILL)
    if (name === 'with statistics') database.exec('analyze')
    expect(STATEMENTS.length).toBeGreaterThan(95)
    const poor = STATEMENTS.flatMap(({ statement, sql }) => {
      const values = Array.from(sql.matchAll(/\?/g), () => 0)
      const steps = database.prepare(`explain query plan ${sql}`).all(...values)
      return steps.map(([, , , detail]) => `${statement}: ${String(detail)}`)
    }).filter((step) => /: SCAN|TEMP B-TREE|AUTOMATIC/.test(step) && !WALKED.test(step) && !FEW.test(step))
    database.close()
    expect(poor).toEqual([])
  })
})
