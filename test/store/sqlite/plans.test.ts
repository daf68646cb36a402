/**
 * Each hot statement finds its rows by a key or an index made for it, on a table full of finished runs and of a
 * backlog of other definitions: no scan and no sorting, whether SQLite has statistics or not.
 */
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import * as attempts from '../../../src/store/sqlite/attempts.ts'
import * as checkpoints from '../../../src/store/sqlite/checkpoints.ts'
import * as claims from '../../../src/store/sqlite/claims.ts'
import * as leases from '../../../src/store/sqlite/leases.ts'
import * as runs from '../../../src/store/sqlite/runs.ts'
import { freshPath, openStore } from './files.ts'

/** Sorts the live claims, which are few. */
const SORTING: readonly string[] = ['LIST_PENDING']

const EXPORTS: Readonly<Record<string, unknown>> = { ...attempts, ...checkpoints, ...claims, ...leases, ...runs }
const STATEMENTS = Object.entries(EXPORTS).flatMap(([statement, sql]) =>
  typeof sql === 'string' && /^\s*(select|insert|update|delete)/.test(sql) ? [{ statement, sql }] : [],
)

const FILL = `
with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000)
insert into perdure_runs (id, definition, kind, status, input_hash, due_at, token, owner, lease_until, epoch,
  deliveries, attempt, crashes, max_recoveries, cancel_requested, created_at, start_id)
select 'run ' || i, case when i % 2 = 0 then 'convert' else 'other ' || (i % 7) end, 'workflow',
  case when i % 10 = 1 then 'ENQUEUED' when i % 1000 = 2 then 'WAITING' when i % 1000 = 4 then 'PENDING'
    when i % 100 = 6 then 'ERROR' else 'SUCCESS' end,
  'hash', case when i % 1000 = 2 then i end, 'token ' || i, 'owner ' || (i % 3), case when i % 1000 = 4 then i end,
  0, 1, 1, 0, 50, 0, i, 'start'
from n`

describe.each(['without statistics', 'with statistics'])('plans %s', (name) => {
  it('use keys and indexes', async () => {
    const path = freshPath()
    await openStore(path)
    const database = new Database(path)
    database.exec(FILL)
    if (name === 'with statistics') database.exec('analyze')
    expect(STATEMENTS.length).toBeGreaterThan(25)
    const poor = STATEMENTS.flatMap(({ statement, sql }) => {
      const values = Array.from(sql.matchAll(/\?/g), () => 0)
      const steps = database.prepare<unknown[], { detail: string }>(`explain query plan ${sql}`).all(...values)
      return steps.map(({ detail }) => `${statement}: ${detail}`)
    }).filter((step) => /SCAN|TEMP B-TREE/.test(step) && !SORTING.some((it) => step.startsWith(it)))
    database.close()
    expect(poor).toEqual([])
  })
})
