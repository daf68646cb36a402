/** What claims meet in other transactions, step by step: nothing is lost, and nobody waits for a user's. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { ClaimRequest } from '../../../src/store/contract.ts'
import { claim } from '../../../src/store/postgres/claim/claim.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { addStarts, openLanes } from '../../../src/store/postgres/lanes.ts'
import { changeQueue, registerQueues } from '../../../src/store/postgres/queues.ts'
import { newClaim } from '../sqlite/requests.ts'
import { enqueue, newRun, submit } from './claims.ts'
import { startSchema } from './start-schema.ts'

const LANE = { queue: 'media', lane: 'eu' }
const LISTED = { ...LANE, definition: 'convert', version: null }

let tokens = 0
function request(count: number, fields: Parameters<typeof newClaim>[1] = {}): ClaimRequest {
  return newClaim(
    Array.from({ length: count }, () => `token ${tokens++}`),
    { queue: 'media', ...fields },
  )
}

async function claimIds(database: Database, count: number): Promise<readonly string[]> {
  return (await claim(database, request(count))).runs.map(({ run }) => run.id)
}

async function settle(database: Database, { runs }: Awaited<ReturnType<typeof claim>>): Promise<void> {
  for (const { run, token } of runs) {
    const settlement = { type: 'succeed', output: '1' } as const
    await submit(database, { type: 'settle', runId: run.id, token, entries: [], settlement })
  }
}

/** True once it waits for a lock, or for whatever else. */
async function waits(promise: Promise<unknown>): Promise<boolean> {
  return (await Promise.race([promise.then(() => 'done'), sleep(150, 'waits')])) === 'waits'
}

const inLane = (id: string, lane = 'eu') => newRun(id, { queue: 'media', partitionKey: lane })

describe('a lane', () => {
  it('that a claim closes while the end of its run is under way is open again', async () => {
    const { database, register, session, run } = await startSchema()
    await register({ name: 'media', partitioned: true, globalConcurrency: 1 })
    await enqueue(database, inLane('a'), inLane('b'))
    await claim(database, request(1))
    await run('update perdure.lanes set ready_at = 0')
    // The end: the run first, then the rows of its lane.
    const other = await session()
    await other.run('begin')
    await other.run(`update perdure.runs set status = 'SUCCESS', ended_at = 1, lease_until = null where id = 'a'`)
    await other.run(`select 1 from perdure.lanes for no key update`)
    const claimed = claim(database, request(1))
    expect(await waits(claimed)).toBe(true)
    await other.run('commit')
    expect((await claimed).runs).toHaveLength(0)
    expect(await claimIds(database, 1)).toEqual(['b'])
  })

  it('that has got its row while the end of its run was under way is not closed behind its back', async () => {
    const { database, register, session } = await startSchema()
    await register({ name: 'media', partitioned: true, globalConcurrency: 1 })
    await enqueue(database, inLane('a'))
    expect(await claimIds(database, 1)).toEqual(['a'])
    // The end finds no row of the lane to open.
    const other = await session()
    await other.run('begin')
    await other.run(`update perdure.runs set status = 'SUCCESS', ended_at = 1, lease_until = null where id = 'a'`)
    await enqueue(database, inLane('b'))
    expect(await claimIds(database, 1)).toEqual([])
    await other.run('commit')
    expect(await claimIds(database, 1)).toEqual(['b'])
  })

  it('that a claim is about to close is opened by the end that waits for it', async () => {
    const { database, register, session, run } = await startSchema()
    await register({ name: 'media', partitioned: true })
    await enqueue(database, inLane('a'))
    const other = await session()
    await other.run('begin')
    await other.run('update perdure.lanes set ready_at = null')
    const opened = database.write((transaction) => openLanes(transaction, [LANE]), { lockTimeoutMs: 5_000 })
    expect(await waits(opened)).toBe(true)
    await other.run('commit')
    await opened
    expect(await run('select ready_at from perdure.lanes')).toEqual([{ ready_at: '0' }])
  })

  it('that a claim deletes is there again for the start that waits for it', async () => {
    const { database, register, session, run } = await startSchema()
    await register({ name: 'media', partitioned: true })
    await enqueue(database, inLane('a'))
    const other = await session()
    await other.run('begin')
    await other.run('delete from perdure.lanes')
    const added = database.write((transaction) => addStarts(transaction, [LISTED]), { lockTimeoutMs: 5_000 })
    expect(await waits(added)).toBe(true)
    await other.run('commit')
    await added
    expect(await run('select lane from perdure.lanes')).toEqual([{ lane: 'eu' }])
  })

  it('that another start has added, or has not, is there', async () => {
    for (const end of ['commit', 'rollback']) {
      const { database, register, session, run } = await startSchema()
      await register({ name: 'media', partitioned: true })
      const other = await session()
      await other.run('begin')
      await other.run(`insert into perdure.lanes values ('media', 'eu', 'convert', '', 1, 0)`)
      const added = database.write((transaction) => addStarts(transaction, [LISTED]), { lockTimeoutMs: 5_000 })
      expect(await waits(added)).toBe(true)
      await other.run(end)
      await added
      expect(await run('select lane from perdure.lanes')).toEqual([{ lane: 'eu' }])
    }
  })

  it('is not deleted as empty while somebody adds a run to it', async () => {
    const { database, register, session, run } = await startSchema()
    await register({ name: 'media', partitioned: true })
    await enqueue(database, inLane('a'))
    const other = await session()
    await other.run('begin')
    await other.run('select 1 from perdure.lanes for key share')
    expect(await claimIds(database, 5)).toEqual(['a'])
    await other.run('commit')
    expect(await run('select lane from perdure.lanes')).toEqual([{ lane: 'eu' }])
    expect(await claimIds(database, 5)).toEqual([])
    expect(await run('select lane from perdure.lanes')).toEqual([])
  })
})

describe('a claim', () => {
  it.each([
    {},
    { globalConcurrency: 10 },
    { partitioned: true },
    { partitioned: true, rateLimit: { limit: 9, periodMs: 1_000 } },
  ])('does not wait for the start in a transaction of a user, and finds its run afterwards: %o', async (knobs) => {
    const { database, register, session } = await startSchema()
    await register({ name: 'media', ...knobs })
    await enqueue(database, inLane('a'), inLane('b', 'us'))
    const user = await session()
    await user.run('begin')
    await user.run(
      `select * from perdure.start('convert', '"x"', '{"id": "c", "queue": "media", "partitionKey": "eu"}')`,
    )
    expect((await claimIds(database, 1)).concat(await claimIds(database, 5)).toSorted()).toEqual(['a', 'b'])
    // Nor does a change of the limits.
    await changeQueue(database, 'media', { globalConcurrency: 9 })
    await user.run('commit')
    expect(await claimIds(database, 5)).toEqual(['c'])
  })

  it.each([{}, { globalConcurrency: 10 }])(
    'passes over what somebody has locked, and comes again soon: %o',
    async (knobs) => {
      const { database, register, session } = await startSchema()
      await register({ name: 'media', ...knobs })
      await enqueue(database, inLane('a'), inLane('b'), inLane('c'))
      const other = await session()
      await other.run('begin')
      await other.run(`select 1 from perdure.runs where id = 'a' for no key update`)
      expect((await claimIds(database, 3)).toSorted()).toEqual(['b', 'c'])
      const { runs, nextAt } = await claim(database, request(3))
      expect(runs).toEqual([])
      expect(nextAt).toBeGreaterThan(Date.now() - 5_000)
      await other.run('commit')
      expect(await claimIds(database, 3)).toEqual(['a'])
    },
  )

  it('of a queue without limits finds others beside those that are being claimed', async () => {
    const { database, register } = await startSchema()
    await register({ name: 'media' })
    await enqueue(database, ...Array.from({ length: 200 }, (_, n) => inLane(`run ${n}`)))
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimIds(database, 20)))
    const ids = claims.flat()
    expect(new Set(ids).size).toBe(ids.length)
    while (ids.length < 200) ids.push(...(await claimIds(database, 100)))
    expect(new Set(ids).size).toBe(200)
  })

  it('that is sent again while the first is under way gives each token once', async () => {
    const { database, register } = await startSchema()
    await register({ name: 'media' })
    await enqueue(database, ...Array.from({ length: 20 }, (_, n) => inLane(`run ${n}`)))
    const asked = request(5)
    const first = await claim(database, asked)
    expect((await claim(database, asked)).runs).toEqual(first.runs)
  })
})

describe('a queue that becomes partitioned', () => {
  it('waits for no start of a caller, whose run is in its lane when the caller commits', async () => {
    const { database, register, session, run } = await startSchema()
    await register({ name: 'media' })
    const user = await session()
    await user.run('begin')
    await user.run(
      `select * from perdure.start('convert', '"x"', '{"id": "a", "queue": "media", "partitionKey": "eu"}')`,
    )
    await changeQueue(database, 'media', { partitioned: true })
    await user.run('commit')
    await enqueue(database, inLane('b', 'us'))
    expect(await run('select id, lane from perdure.runs order by id')).toEqual([
      { id: 'a', lane: 'eu' },
      { id: 'b', lane: 'us' },
    ])
    expect((await claimIds(database, 5)).toSorted()).toEqual(['a', 'b'])
  })

  it('at its first registration waits for no start of a caller that found no queue', async () => {
    const { database, session } = await startSchema()
    const user = await session()
    await user.run('begin')
    await user.run(
      `select * from perdure.start('convert', '"x"', '{"id": "a", "queue": "media", "partitionKey": "eu"}')`,
    )
    await registerQueues(database, [
      {
        ...{ name: 'media', globalConcurrency: 1, releaseWhileWaiting: false, rateLimit: null, priorityEnabled: false },
        ...{ partitioned: true, retention: null, configVersion: 0 },
      },
    ])
    await user.run('commit')
    expect(await claimIds(database, 5)).toEqual(['a'])
  })

  it('races with claims, ends and starts: every run ends once', async () => {
    const { database, register } = await startSchema()
    await register({ name: 'media', globalConcurrency: 2 })
    const ids = Array.from({ length: 120 }, (_, n) => `run ${n}`)
    const ended: string[] = []
    const work = async (): Promise<void> => {
      for (let n = 0; ended.length < ids.length && n < 400; n++) {
        const outcome = await claim(database, request(3)).catch(() => ({ runs: [], nextAt: null }))
        for (const claimed of outcome.runs) {
          for (;;) {
            try {
              await settle(database, { runs: [claimed], nextAt: null })
              break
            } catch {}
          }
          ended.push(claimed.run.id)
        }
      }
    }
    const start = async (): Promise<void> => {
      for (const [n, id] of ids.entries()) {
        for (;;) {
          try {
            await enqueue(database, inLane(id, `lane ${n % 5}`))
            break
          } catch {}
        }
      }
    }
    const change = async (): Promise<void> => {
      for (let n = 0; n < 12; n++) {
        await changeQueue(database, 'media', { partitioned: n % 2 === 0 }).catch(() => {})
        await sleep(20)
      }
    }
    await Promise.all([start(), work(), work(), work(), change()])
    expect(ended.toSorted()).toEqual(ids.toSorted())
  })
})
