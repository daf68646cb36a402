/** Renewals and reclaims among others' locks: nobody waits for long, nothing is called lost that isn't, one wins. */
import { describe, expect, it } from 'vitest'
import type { Database } from '../../../src/store/postgres/database.ts'
import { cancelRequests, nextExpiry, reclaim, renew } from '../../../src/store/postgres/leases.ts'
import { list } from '../../../src/store/postgres/listing.ts'
import { attempts, endings, runs } from '../../../src/store/postgres/reads.ts'
import { claimed, enqueue, held, newRun, OWNER, submit, tokenOf } from './claims.ts'
import { openDatabase, stranger } from './databases.ts'
import { serverUrl } from './server.ts'

const SUCCEED = { type: 'succeed', output: '"done"' } as const

function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `run ${n}`)
}

async function leaseOf(database: Database, id: string): Promise<number> {
  const [run] = await runs(database, [id])
  return run?.leaseUntil ?? 0
}

/** Somebody else's transaction that has the rows of these runs. */
async function lock(database: Database, ...ids: readonly string[]): Promise<() => Promise<void>> {
  const client = await stranger(await serverUrl())
  await client.query('begin')
  await client.query(database.render('select 1 from perdure.runs where id = any($1) for no key update'), [ids])
  return async () => {
    await client.query('rollback')
  }
}

describe('a renewal', () => {
  it('passes over what others have locked, which is not lost', async () => {
    const database = await openDatabase()
    const ids = numbered(50)
    await enqueue(database, ...ids.map((id) => claimed(id)))
    const [free, locked] = [await leaseOf(database, 'run 1'), await leaseOf(database, 'run 7')]
    const unlock = await lock(database, 'run 7', 'run 23')
    const start = performance.now()
    expect(await renew(database, held(...ids, 'nobody'), 90_000)).toEqual({
      lost: [tokenOf('nobody')],
      cancelRequested: [],
    })
    expect(performance.now() - start).toBeLessThan(2_000)
    expect(await leaseOf(database, 'run 1')).toBeGreaterThan(free + 20_000)
    expect(await leaseOf(database, 'run 7')).toBe(locked)
    await unlock()
    await renew(database, held(...ids), 90_000)
    expect(await leaseOf(database, 'run 7')).toBeGreaterThan(locked + 20_000)
  })

  it('reaches a run that commits keep locked nearly all the time', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('busy'))
    let committing = true
    const commits = async (): Promise<void> => {
      while (committing) {
        await submit(database, { type: 'checkpoint', runId: 'busy', token: tokenOf('busy'), entries: [] })
      }
    }
    const busy = Promise.all([commits(), commits(), commits()])
    for (let n = 0; n < 10; n++) {
      const before = await leaseOf(database, 'busy')
      await new Promise((resolve) => setTimeout(resolve, 2))
      expect((await renew(database, held('busy'), 60_000)).lost).toEqual([])
      expect(await leaseOf(database, 'busy')).toBeGreaterThan(before)
    }
    committing = false
    await busy
  })

  it('tells of requests to cancel; so does a question for them', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('a'), claimed('b'))
    await submit(database, { type: 'cancel', commandId: 'c', runId: 'b' })
    expect(await renew(database, held('a', 'b'), 60_000)).toEqual({ lost: [], cancelRequested: [tokenOf('b')] })
    expect(await cancelRequests(database, OWNER)).toEqual(held('b'))
  })
})

describe('a reclaim', () => {
  it('and a settlement of the same run: one of them wins', async () => {
    const database = await openDatabase()
    const ids = numbered(60)
    await enqueue(database, ...ids.map((id) => claimed(id)))
    const reclaiming = Promise.all([1, 2, 3].map(() => reclaim(database, { deadOwners: [OWNER], limit: 20 })))
    const settled = await Promise.all(
      ids.map(async (runId) => {
        const command = { type: 'settle', runId, token: tokenOf(runId), entries: [], settlement: SUCCEED } as const
        const outcome = await submit(database, command)
        return outcome?.type === 'applied' ? [runId] : []
      }),
    )
    const taken = (await reclaiming).flatMap((outcome) => outcome.runs.map(({ id }) => id))
    expect([...settled.flat(), ...taken].toSorted()).toEqual([...ids].toSorted())
    for (const run of await runs(database, ids)) {
      expect(run?.status).toBe(taken.includes(run?.id ?? '') ? 'ENQUEUED' : 'SUCCESS')
    }
  })

  it('by several at once takes each claim once, and each is done soon', async () => {
    const database = await openDatabase()
    const ids = numbered(600)
    await enqueue(database, ...ids.map((id) => claimed(id, 1)))
    const all: string[] = []
    const reap = async (): Promise<void> => {
      for (;;) {
        const { runs: taken } = await reclaim(database, { deadOwners: [OWNER], limit: 50 })
        all.push(...taken.map(({ id }) => id))
        if (taken.length === 0) return
      }
    }
    await Promise.all([reap(), reap(), reap(), reap()])
    expect(all.toSorted()).toEqual([...ids].toSorted())
    for (const run of await runs(database, ids))
      expect(run).toMatchObject({ crashes: 1, token: null, status: 'ENQUEUED' })
    expect((await attempts(database, 'run 5')).map(({ outcome }) => outcome)).toEqual(['crashed'])
    expect(await nextExpiry(database)).toBe(null)
  })

  it('passes over what is locked, and over a renewed lease', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('a', 1), claimed('locked', 1), claimed('renewed', 1))
    await renew(database, held('renewed'), 60_000)
    const unlock = await lock(database, 'locked')
    const first = await reclaim(database, { deadOwners: [], limit: 10 })
    expect(first.runs.map(({ id }) => id)).toEqual(['a'])
    expect((await reclaim(database, { deadOwners: [], limit: 10 })).runs).toEqual([])
    await unlock()
    const last = await reclaim(database, { deadOwners: [], limit: 10 })
    expect(last.runs.map(({ id }) => id)).toEqual(['locked'])
  })

  it('whose consequences are locked takes the others', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('parent'), claimed('other', 1))
    await enqueue(database, claimed('child', 1, { maxRecoveries: 0 }), claimed('dies', 1, { maxRecoveries: 0 }))
    const children = [{ position: 0, runId: 'child' }]
    const settlement = { type: 'suspend', wakeAt: null, children } as const
    await submit(database, { type: 'settle', runId: 'parent', token: tokenOf('parent'), entries: [], settlement })
    const unlock = await lock(database, 'parent')
    const { runs: taken, rippled } = await reclaim(database, { deadOwners: [], limit: 10 })
    expect(taken.map(({ id, status }) => [id, status]).toSorted()).toEqual([
      ['dies', 'DEAD'],
      ['other', 'ENQUEUED'],
    ])
    expect(rippled).toBe(false)
    await unlock()
    const after = await reclaim(database, { deadOwners: [], limit: 10 })
    expect(after.runs.map(({ id, status }) => [id, status])).toEqual([['child', 'DEAD']])
    expect(after.rippled).toBe(true)
    const [parent] = await runs(database, ['parent'])
    expect(parent?.dueAt).not.toBe(null)
  })

  it('of a parent that was cancelled takes its children along, those that are taken with it, too', async () => {
    const database = await openDatabase()
    const child = (id: string, parentId: string): ReturnType<typeof newRun> => claimed(id, 1, { parentId })
    await enqueue(database, claimed('a', 1), child('b', 'a'), newRun('c', { parentId: 'b' }), child('d', 'c'))
    await enqueue(database, newRun('e', { parentId: 'd' }), newRun('f'))
    await submit(database, { type: 'cancel', commandId: 'x', runId: 'a' })
    const { runs: taken, rippled } = await reclaim(database, { deadOwners: [], limit: 10 })
    expect(taken.map(({ id, status }) => [id, status])).toEqual(['a', 'b', 'd'].map((id) => [id, 'CANCELLED']))
    expect(rippled).toBe(true)
    const cancelled = await list(database, { status: ['CANCELLED'], limit: 10 })
    expect(cancelled.map(({ id }) => id)).toEqual(['e', 'd', 'c', 'b', 'a'])
    const failure = { kind: 'cancelled', error: null }
    expect((await endings(database, ['e', 'd'])).get('d')).toEqual({ status: 'CANCELLED', failure })
  })
})
