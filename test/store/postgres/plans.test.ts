/**
 * Hot operations read rows in proportion to what they take, beside 100,000 runs, most of them finished: as the server
 * counts them itself, whatever the plan looks like. (What plans look like, the other tests of plans tell.)
 */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Command, Settlement } from '../../../src/store/contract.ts'
import { claim } from '../../../src/store/postgres/claim/claim.ts'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import { nextExpiry, reclaim, renew } from '../../../src/store/postgres/leases.ts'
import { checkSettings } from '../../../src/store/postgres/options.ts'
import { PlainStarts } from '../../../src/store/postgres/plain-starts.ts'
import { endings, runs } from '../../../src/store/postgres/reads.ts'
import { newClaim } from '../sqlite/requests.ts'
import { newRun } from './claims.ts'
import { freshSchema, run } from './server.ts'

const FILL = `
insert into perdure.queues select 'queue ' || n, null, false, null, null, false, false, null, false, 0, 0
  from generate_series(0, 3) n;
insert into perdure.runs (seq, id, definition, queue, priority, lane, rank, status, epoch, deliveries, attempt, crashes,
  max_recoveries, cancel_requested, created_at, start_id, token, owner, lease_until, started_at, ended_at)
select pg_catalog.nextval('perdure.places'), 'run ' || n, 'convert', 'queue ' || n % 3, 0, '', 0, status, 0, 1, 1, 0, 50,
  false, 1, 's', case when status = 'SUCCESS' then 'token ' || n end, case when status = 'SUCCESS' then 'owner' end, null,
  1, case when status = 'SUCCESS' then n end
from (
  select n, case when n % 10 = 0 then 'ENQUEUED' else 'SUCCESS' end as status from generate_series(1, 100000) n) n;
insert into perdure.inputs select seq, '"in"' from perdure.runs;
insert into perdure.endings select seq, '"out"', null from perdure.runs where ended_at is not null;
insert into perdure.checkpoints
  select seq, 0, 'outcome', 0, 'step', 'name', false, '1', 1, 1, null, 1, 1 from perdure.runs where ended_at is not null`

const COUNT = `
select (select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_all_tables where schemaname = $1)
  + (select sum(idx_tup_read) from pg_stat_all_indexes where schemaname = $1) as read`

const TAKEN = 20
/** Entries of indexes and rows, for each run: it is looked up by several statements. */
const MOST_EACH = 40

let schema: string
let database: Database
let pool: pg.Pool

/** Entries of indexes and rows that are read by what the one connection of the pool does. */
async function read<T>(body: () => Promise<T>): Promise<{ readonly answer: T; readonly rows: number }> {
  const count = async (): Promise<number> => {
    await pool.query('select pg_stat_force_next_flush()')
    return Number((await run(COUNT, [schema])).rows[0]?.['read'])
  }
  const before = await count()
  const answer = await body()
  return { answer, rows: (await count()) - before }
}

const numbers = Array.from({ length: TAKEN }, (_, n) => n)
const settle = (runId: string, token: string, settlement: Settlement): Command => ({
  ...{ type: 'settle', runId, token, settlement },
  entries: [],
})

describe.each([
  ['not analyzed', 'select 1'],
  ['analyzed', 'analyze perdure.runs; analyze perdure.inputs; analyze perdure.endings; analyze perdure.checkpoints'],
])('beside 100,000 runs, %s', (_, prepare) => {
  beforeAll(async () => {
    const fresh = await freshSchema()
    schema = fresh.schema
    pool = new pg.Pool({ connectionString: fresh.url, max: 1 })
    database = await Database.open({ settings: checkSettings(pool, { schema }), clock: new DatabaseClock() })
    for (const statement of `${FILL};${prepare}`.split(';')) await run(database.render(statement))
    return async () => {
      await database.close()
      await pool.end()
      await fresh.destroy()
    }
  })

  it('starts, claims, renewals, ends, reclaims and looks at runs read a few rows for each of them', async () => {
    const plain = new PlainStarts(database)
    const started = numbers.map((n) => newRun(`new ${n}`, { queue: 'queue 3' }))
    const held = { owner: 'us', queue: 'queue 0' }
    const steps: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['starts', () => commit(database, [{ type: 'enqueue', commandId: 'c', runs: started }])],
      ['plain starts', () => plain.commit([{ type: 'enqueue', commandId: 'c 2', runs: started.map(again) }])],
    ]
    for (const [name, body] of steps) expect((await read(body)).rows, name).toBeLessThan(TAKEN * MOST_EACH)

    const claimed = await read(() =>
      claim(
        database,
        newClaim(
          numbers.map((n) => `token ${n}`),
          held,
        ),
      ),
    )
    expect(claimed.answer.runs).toHaveLength(TAKEN)
    expect(claimed.rows, 'claim').toBeLessThan(TAKEN * MOST_EACH)

    const claims = claimed.answer.runs.map(({ run: { id }, token }) => ({ runId: id, token }))
    const ids = claims.map(({ runId }) => runId)
    const ended = claims
      .slice(TAKEN / 2)
      .map(({ runId, token }) => settle(runId, token, { type: 'succeed', output: '1' }))
    const later: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['renewal', () => renew(database, claims, 60_000)],
      ['next expiry', () => nextExpiry(database)],
      ['end', () => commit(database, ended)],
      ['look at ends', () => endings(database, ids)],
      ['look at runs', () => runs(database, ids)],
      ['reclaim', () => reclaim(database, { deadOwners: ['us'], limit: 100 })],
    ]
    for (const [name, body] of later) expect((await read(body)).rows, name).toBeLessThan(TAKEN * MOST_EACH)
  })
})

function again(start: ReturnType<typeof newRun>): ReturnType<typeof newRun> {
  return { ...start, id: `${start.id} again` }
}
