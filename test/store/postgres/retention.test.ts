/** Retention among others: several sweep at once, and what somebody has in hand is left for later. */
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/store/conformance/manual-clock.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { runs } from '../../../src/store/postgres/reads.ts'
import { sweep } from '../../../src/store/postgres/retention.ts'
import { claimed, enqueue, submit, tokenOf } from './claims.ts'
import { openDatabase, stranger } from './databases.ts'
import { run, serverUrl } from './server.ts'

const DEFINITIONS = [{ name: 'convert', retention: { success: 1_000, error: null, dead: null, cancelled: null } }]
const DAY_MS = 24 * 3_600_000

async function ended(database: Database, count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, n) => `run ${n}`)
  await enqueue(database, ...ids.map((id) => claimed(id)))
  const settlement = { type: 'succeed', output: '"done"' } as const
  const settle = { type: 'settle', entries: [], settlement } as const
  await commit(
    database,
    ids.map((runId) => ({ ...settle, runId, token: tokenOf(runId) })),
  )
  return ids
}

describe('a sweep', () => {
  it('at the same time as others removes each run once', async () => {
    const clock = new ManualClock()
    const database = await openDatabase({ clock })
    const ids = await ended(database, 120)
    clock.pass(2_000)
    const sweepAll = async (): Promise<number> => {
      const { removed } = await sweep(database, { definitions: DEFINITIONS, limit: 30 })
      return removed === 0 ? 0 : removed + (await sweepAll())
    }
    const removed = await Promise.all([sweepAll(), sweepAll(), sweepAll(), sweepAll()])
    expect(removed.reduce((sum, one) => sum + one)).toBe(120)
    expect((await runs(database, ids)).every((row) => row === undefined)).toBe(true)
    for (const table of ['inputs', 'endings', 'checkpoints', 'attempts', 'waits']) {
      const { rows } = await run(database.render(`select count(*)::int as left from perdure.${table}`))
      expect(rows).toEqual([{ left: 0 }])
    }
  })

  it('passes over what others have locked, and comes back for it', async () => {
    const clock = new ManualClock()
    const database = await openDatabase({ clock })
    await ended(database, 5)
    clock.pass(2_000)
    const client = await stranger(await serverUrl())
    await client.query('begin')
    await client.query(database.render(`select 1 from perdure.runs where id = 'run 2' for key share`))
    const first = await sweep(database, { definitions: DEFINITIONS, limit: 100 })
    expect(first.removed).toBe(4)
    expect(first.nextAt).toBeLessThanOrEqual(clock.now())
    expect((await sweep(database, { definitions: DEFINITIONS, limit: 100 })).removed).toBe(0)
    await client.query('commit')
    expect(await sweep(database, { definitions: DEFINITIONS, limit: 100 })).toEqual({ removed: 1, nextAt: null })
  })

  it('removes receipts when no resend can come any more, many of them in several rounds', async () => {
    const clock = new ManualClock()
    const database = await openDatabase({ clock })
    const put = { type: 'put', key: 'k', value: '1', hash: '#' } as const
    await submit(database, { type: 'kv', commandId: 'first', change: put })
    await run(
      database.render(`insert into perdure.receipts select 'more ' || n, outcome, given_at + 1
        from perdure.receipts, generate_series(1, 1500) n`),
    )
    const left = async (): Promise<number> => {
      const { rows } = await run(database.render('select count(*)::int as n from perdure.receipts'))
      return rows[0].n
    }
    clock.pass(DAY_MS)
    expect(await sweep(database, { definitions: [], limit: 10 })).toEqual({ removed: 0, nextAt: null })
    expect(await left()).toBe(1_501)
    clock.pass(2)
    const { nextAt } = await sweep(database, { definitions: [], limit: 10 })
    expect(nextAt).toBeLessThanOrEqual(clock.now())
    expect(await left()).toBe(501)
    expect(await sweep(database, { definitions: [], limit: 10 })).toEqual({ removed: 0, nextAt: null })
    expect(await left()).toBe(0)
  })
})
