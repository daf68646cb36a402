/** perdure.start in transactions of the caller's: what others see, who waits for whom, and for what. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { ClaimRequest } from '../../../src/store/contract.ts'
import { claim } from '../../../src/store/postgres/claim/claim.ts'
import { changeQueue } from '../../../src/store/postgres/queues.ts'
import { type CallerSession, type StartSchema, startSchema } from './start-schema.ts'

/** Long enough to see that somebody waits. */
const A_WHILE_MS = 150

const ISOLATIONS = ['read committed', 'repeatable read', 'serializable'] as const

function start(caller: Pick<CallerSession, 'run'>, options: object, input = '1'): ReturnType<CallerSession['run']> {
  return caller.run('select * from perdure.start($1, $2, $3)', 'greet', input, JSON.stringify(options))
}

async function ids({ run }: StartSchema): Promise<unknown[]> {
  return (await run('select id from perdure.runs order by id')).map(({ id }) => id)
}

/** What becomes of it, and that it took its time. */
async function waits<T>(answer: Promise<T>): Promise<{ readonly answer: Promise<T> }> {
  let settled = false
  answer.then(
    () => (settled = true),
    () => (settled = true),
  )
  await setTimeout(A_WHILE_MS)
  expect(settled).toBe(false)
  return { answer }
}

describe.each(ISOLATIONS)('at %s', (isolation) => {
  const begin = `begin isolation level ${isolation}`

  test('a run is there when its transaction has committed, and only then', async () => {
    const schema = await startSchema()
    const caller = await schema.session()
    await caller.run(begin)
    await start(caller, { id: 'gone' })
    await caller.run('rollback')
    await caller.run(begin)
    await start(caller, { id: 'kept' })
    expect(await start(caller, { id: 'kept' })).toEqual([{ id: 'kept', newly_submitted: false, conflict: null }])
    expect(await start(caller, { id: 'kept' }, '2')).toEqual([
      { id: 'kept', newly_submitted: false, conflict: 'mismatch' },
    ])
    expect(await ids(schema)).toEqual([])
    await caller.run('commit')
    expect(await ids(schema)).toEqual(['kept'])
  })

  test('a conflict leaves the transaction as it is, unless it shall be an error', async () => {
    const schema = await startSchema()
    await start(schema, { id: 'a' })
    const caller = await schema.session()
    await caller.run(begin)
    expect(await start(caller, { id: 'a' }, '2')).toMatchObject([{ conflict: 'mismatch' }])
    await start(caller, { id: 'b' })
    await caller.run('savepoint here')
    await expect(start(caller, { id: 'a', onConflict: 'raise' }, '2')).rejects.toMatchObject({ code: '23505' })
    await caller.run('rollback to here')
    await caller.run('commit')
    expect(await ids(schema)).toEqual(['a', 'b'])
  })

  test('transactions at once that start different runs do not mind each other', async () => {
    const schema = await startSchema()
    await schema.register({ name: 'tenants', partitioned: true })
    const callers = await Promise.all(Array.from({ length: 6 }, () => schema.session()))
    for (const caller of callers) await caller.run(begin)
    for (let round = 0; round < 5; round += 1) {
      for (const [n, caller] of callers.entries()) {
        const key = `key-${(n + round) % callers.length}`
        await start(caller, { queue: 'tenants', partitionKey: key, dedupId: `${n}-${round}` })
        // What nobody has registered yet is read and written by the check that nobody has.
        await start(caller, isolation === 'serializable' ? {} : { queue: 'unknown' })
      }
    }
    for (const caller of callers) await caller.run('commit')
    expect(await ids(schema)).toHaveLength(60)
  })

  test.each([{ id: 'a' }, { queue: 'mail', dedupId: 'd', dedupPolicy: 'returnExisting' }])(
    'of two that race for %j the second waits: it is answered, or creates the run',
    async (options) => {
      const schema = await startSchema()
      const [first, second] = [await schema.session(), await schema.session()]
      for (const ending of ['rollback', 'commit']) {
        await first.run(begin)
        const [one] = await start(first, options)
        // Its snapshot is taken when it starts.
        await second.run(begin)
        const { answer } = await waits(start(second, options).catch((error: unknown) => error))
        await first.run(ending)
        if (ending === 'rollback') expect(await answer).toMatchObject([{ newly_submitted: true, conflict: null }])
        else if (isolation === 'read committed') {
          expect(await answer).toEqual([{ id: one?.['id'], newly_submitted: false, conflict: null }])
        } else {
          // It can't see the other: it has to begin anew, as with any table.
          expect(await answer).toMatchObject({ code: '40001' })
        }
        await second.run('rollback')
      }
      expect(await ids(schema)).toHaveLength(1)
    },
  )

  test('what a queue has become when the transaction commits is what counts', async () => {
    const schema = await startSchema()
    await schema.register({ name: 'tenants' })
    const caller = await schema.session()
    /** Starts a run on the queue, which is changed before the commit; answers with where that has put the run. */
    const placed = async (queue: string, change: () => Promise<unknown>): Promise<unknown> => {
      await caller.run(begin)
      await start(caller, { id: queue, queue, partitionKey: 'k', priority: 5 })
      await change()
      const ending = await caller.run('commit').catch((error: unknown) => error)
      // What a snapshot is too old to show can't be heeded: it has to begin anew.
      if (isolation !== 'read committed') expect(ending).toMatchObject({ code: '40001' })
      else expect(ending).toEqual([])
      await start(schema, { id: queue, queue, partitionKey: 'k', priority: 5 })
      return (await schema.run('select status, lane, rank from perdure.runs where id = $1', queue))[0]
    }
    const knobs = { partitioned: true, priorityEnabled: true }
    const there = { status: 'DELAYED', lane: 'k', rank: '5' }
    expect(
      await placed('tenants', async () => {
        await changeQueue(schema.database, 'tenants', { globalConcurrency: 3 })
        await changeQueue(schema.database, 'tenants', knobs)
      }),
    ).toEqual(there)
    expect(await placed('fresh', () => schema.register({ name: 'fresh', ...knobs }))).toEqual(there)
    expect(await schema.run('select count(*)::int from perdure.runs')).toEqual([{ count: 2 }])
  })

  test('changes of its limits, and names of queues that nobody knows, are nothing to a transaction', async () => {
    const schema = await startSchema()
    await schema.register({ name: 'tenants', partitioned: true })
    const caller = await schema.session()
    await caller.run(begin)
    await start(caller, { id: 'limits', queue: 'tenants', partitionKey: 'k' })
    await start(caller, { id: 'unknown', queue: 'unknown' })
    await changeQueue(schema.database, 'tenants', { globalConcurrency: 3, paused: true })
    await caller.run('commit')
    expect(await ids(schema)).toEqual(['limits', 'unknown'])
    expect(await schema.run(`select name from perdure.queues`)).toEqual([{ name: 'tenants' }])
  })
})

describe('while a transaction that has started runs stays open', () => {
  /** Holds runs of both queues in its hands. */
  async function open(): Promise<{ readonly schema: StartSchema; readonly caller: CallerSession }> {
    const schema = await startSchema()
    await schema.register({ name: 'plain' })
    await schema.register({ name: 'tenants', partitioned: true })
    const caller = await schema.session()
    await caller.run('begin')
    for (const queue of ['plain', 'tenants', 'unknown']) {
      for (const partitionKey of ['k', 'l']) await start(caller, { queue, partitionKey, priority: 7 })
    }
    return { schema, caller }
  }

  test('others start runs of the same queues and lanes', async () => {
    const { schema, caller } = await open()
    const other = await schema.session()
    await other.run(`set lock_timeout = '50ms'`)
    for (const queue of ['plain', 'tenants', 'unknown']) {
      for (const partitionKey of ['l', 'k']) await start(other, { queue, partitionKey })
    }
    await caller.run('commit')
    expect(await ids(schema)).toHaveLength(12)
  })

  test('claims take what has been committed, and the rest when it is', async () => {
    const { schema, caller } = await open()
    await changeQueue(schema.database, 'tenants', { globalConcurrency: 3 })
    const claimed = async (): Promise<readonly string[]> =>
      (await claim(schema.database, request())).runs.map(({ run }) => run.id).sort()
    expect(await claimed()).toEqual([])
    for (const queue of ['plain', 'tenants', 'unknown']) await start(schema, { id: queue, queue, partitionKey: 'k' })
    const before = Date.now()
    expect(await claimed()).toEqual(['plain', 'tenants', 'unknown'])
    expect(Date.now() - before).toBeLessThan(1_000)
    await caller.run('commit')
    expect(await claimed()).toHaveLength(6)
    expect(await schema.run('select distinct status from perdure.runs')).toEqual([{ status: 'PENDING' }])
  })

  test('a queue is changed, whatever of it, and registered at once; its runs follow when it is committed', async () => {
    const { schema, caller } = await open()
    const before = Date.now()
    await changeQueue(schema.database, 'tenants', { partitioned: false, priorityEnabled: true })
    await changeQueue(schema.database, 'plain', { partitioned: true, globalConcurrency: 1 })
    await schema.register({ name: 'unknown', partitioned: true })
    expect(Date.now() - before).toBeLessThan(1_000)
    await caller.run('commit')
    const rows = await schema.run('select queue, lane, rank, status from perdure.runs order by queue, seq')
    expect(rows).toEqual([
      { queue: 'plain', lane: 'k', rank: '0', status: 'DELAYED' },
      { queue: 'plain', lane: 'l', rank: '0', status: 'DELAYED' },
      { queue: 'tenants', lane: '', rank: '7', status: 'DELAYED' },
      { queue: 'tenants', lane: '', rank: '7', status: 'DELAYED' },
      { queue: 'unknown', lane: 'k', rank: '0', status: 'DELAYED' },
      { queue: 'unknown', lane: 'l', rank: '0', status: 'DELAYED' },
    ])
    const claimed = [await claim(schema.database, request()), await claim(schema.database, request())]
    expect(claimed.flatMap(({ runs }) => runs)).toHaveLength(6)
  })

  test('one that is changed at the moment of the commit is waited for', async () => {
    const { schema, caller } = await open()
    const admin = await schema.session()
    await admin.run('begin')
    await admin.run(`select 1 from perdure.queues where name = 'tenants' for update`)
    await admin.run(`update perdure.queues set partitioned = false where name = 'tenants'`)
    const { answer } = await waits(caller.run('commit'))
    await admin.run('commit')
    await answer
    const lanes = await schema.run(`select distinct lane from perdure.runs where queue = 'tenants'`)
    expect(lanes).toEqual([{ lane: '' }])
  })

  test('constraints that the caller makes immediate are checked at once, and nothing else is different', async () => {
    const { schema, caller } = await open()
    await caller.run('set constraints all immediate')
    await start(caller, { id: 'last', queue: 'tenants', partitionKey: 'k' })
    await caller.run('commit')
    expect(await ids(schema)).toHaveLength(7)
  })
})

test('listeners are told once, when the transaction has committed', async () => {
  const schema = await startSchema()
  const [{ value: channel } = {}] = await schema.run(`select value from perdure.meta where name = 'channel'`)
  const listener = await schema.session()
  const heard: string[] = []
  listener.client.on('notification', ({ channel: of, payload }) => heard.push(`${of}: ${payload}`))
  await listener.run(`listen "${String(channel)}"`)
  const caller = await schema.session()
  for (const ending of ['rollback', 'commit']) {
    await caller.run('begin')
    for (const id of ['a', 'b', 'c']) await start(caller, { id })
    await caller.run(ending)
    await listener.run('select 1')
    expect(heard).toEqual(ending === 'commit' ? [`${String(channel)}: `] : [])
  }
  await start(schema, { id: 'a' })
  await listener.run('select 1')
  expect(heard).toHaveLength(1)
})

function request(): ClaimRequest {
  return {
    owner: 'worker',
    tokens: Array.from({ length: 20 }, () => randomUUID()),
    definitions: [{ name: 'greet', kind: 'workflow', maxRecoveries: 50, timeoutMs: null }],
    version: null,
    sources: ['plain', 'tenants', 'unknown'].map((queue) => ({ queue, leaseMs: 30_000, room: 20, lanes: null })),
  }
}
