/** The lease thread: a blocked process keeps its claims, up to a bound; it survives the loss of its connection. */
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { realScheduler } from '../../../src/core/scheduler.ts'
import type { LeaseThread, RenewOutcome } from '../../../src/store/contract.ts'
import { clientConfig, clonedConfig } from '../../../src/store/postgres/client-config.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { startLeaseThread } from '../../../src/store/postgres/lease-thread-host.ts'
import { reclaim } from '../../../src/store/postgres/leases.ts'
import { runs } from '../../../src/store/postgres/reads.ts'
import { exitOf, says, startChild } from './children.ts'
import { claimed, enqueue, held, submit, tokenOf } from './claims.ts'
import { emptySchema, openDatabase, stranger } from './databases.ts'
import { Relay } from './relay.ts'
import { run, serverUrl } from './server.ts'

const LEASE_MS = 1_200

describe('a process that blocks its event loop', () => {
  it.each([
    ['for longer than the lease keeps its claim', 60_000, 3 * LEASE_MS, [], 'applied'],
    ['for longer than it may loses its claim', LEASE_MS, 4 * LEASE_MS, ['a'], 'claimLost'],
  ])('%s', async (_, maxBlockedMs, blockMs, lost, outcome) => {
    const { url, schema } = await emptySchema()
    const child = startChild('block.ts', url, schema, String(LEASE_MS), String(maxBlockedMs), String(blockMs))
    await says(child, 'blocked')
    const database = await openDatabase({ connection: url, schema })
    let verdict: string | undefined
    const said = says(child, 'claim is ').then((output) => {
      verdict = output
    })
    const reclaimed: string[] = []
    while (verdict === undefined) {
      for (const { id } of (await reclaim(database, { deadOwners: [], limit: 10 })).runs) reclaimed.push(id)
      await realScheduler.turn()
    }
    await said
    expect(verdict).toContain(`claim is ${outcome}`)
    expect(reclaimed).toEqual(lost)
    // Neither the database nor the thread was closed there: they must not keep the process alive.
    expect(await exitOf(child)).toBe(0)
  })
})

interface Started {
  readonly thread: LeaseThread
  /** The next that the thread tells. */
  renewed(): Promise<RenewOutcome>
  readonly failed: Promise<unknown>
}

function start(database: Database, connection: pg.ClientConfig = database.clientConfig('any')): Started {
  const waiting: ((outcome: RenewOutcome) => void)[] = []
  let onFailed: (error: unknown) => void = () => {}
  const failed = new Promise<unknown>((resolve) => {
    onFailed = resolve
  })
  const thread = startLeaseThread(
    { connection, render: (sql) => database.render(sql) },
    {
      leaseMs: LEASE_MS,
      maxBlockedMs: 60_000,
      onRenewed: (outcome) => {
        for (const resolve of waiting.splice(0)) resolve(outcome)
      },
      onFailed,
    },
  )
  if (thread === null) throw new Error('no thread')
  onTestFinished(() => thread.stop())
  return { thread, renewed: () => new Promise((resolve) => waiting.push(resolve)), failed }
}

async function leaseOf(database: Database, id: string): Promise<number> {
  const [row] = await runs(database, [id])
  return row?.leaseUntil ?? 0
}

describe('the thread', () => {
  it('renews what it holds, not what was dropped, and reports losses and requests to cancel', async () => {
    const database = await openDatabase()
    await enqueue(database, ...['kept', 'dropped', 'asked'].map((id) => claimed(id, LEASE_MS)))
    await submit(database, { type: 'cancel', commandId: 'c', runId: 'asked' })
    const before = [await leaseOf(database, 'kept'), await leaseOf(database, 'dropped')]
    const { thread, renewed } = start(database)
    thread.hold(held('kept', 'dropped', 'asked', 'lost'))
    thread.drop([tokenOf('dropped')])
    expect(await renewed()).toEqual({ lost: [tokenOf('lost')], cancelRequested: [tokenOf('asked')] })
    expect(await leaseOf(database, 'kept')).toBeGreaterThan(before[0] ?? 0)
    expect(await leaseOf(database, 'dropped')).toBe(before[1])
    await thread.stop()
    await thread.stop()
  })

  it('connects for what has to be renewed, and leaves no connection behind', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('a', LEASE_MS))
    const name = `thread ${process.pid}`
    const connections = async (): Promise<number> => {
      const { rows } = await run('select count(*)::int as n from pg_stat_activity where application_name = $1', [name])
      return rows[0].n
    }
    const { thread, renewed } = start(database, { ...database.clientConfig('any'), application_name: name })
    expect(await connections()).toBe(0)
    thread.hold(held('a'))
    await renewed()
    expect(await connections()).toBe(1)
    await thread.stop()
    expect(await connections()).toBe(0)
  })

  it('goes on after the loss of its connection, and after a silence of the network', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('a', LEASE_MS))
    const relay = await Relay.open(await serverUrl())
    const { thread, renewed } = start(database, clientConfig({ connectionString: relay.url }))
    thread.hold(held('a'))
    await renewed()
    relay.cut()
    await renewed()
    const before = await leaseOf(database, 'a')
    relay.silence()
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS))
    relay.heal()
    await renewed()
    expect(await leaseOf(database, 'a')).toBeGreaterThan(before)
  })

  it('renews the others while one is locked, and that one once it is free', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('free', LEASE_MS), claimed('locked', LEASE_MS))
    const client = await stranger(await serverUrl())
    await client.query('begin')
    await client.query(database.render(`select 1 from perdure.runs where id = 'locked' for no key update`))
    const before = await leaseOf(database, 'locked')
    const { thread, renewed } = start(database)
    thread.hold(held('free', 'locked'))
    expect(await renewed()).toEqual({ lost: [], cancelRequested: [] })
    expect(await leaseOf(database, 'free')).toBeGreaterThan(before)
    expect(await leaseOf(database, 'locked')).toBe(before)
    await client.query('commit')
    while ((await leaseOf(database, 'locked')) === before) await realScheduler.turn()
  })

  it('that can do nothing says so', async () => {
    const database = await openDatabase()
    const missing = { ...database.clientConfig('any'), connectionString: 'postgres://nobody:x@127.0.0.1:9/nowhere' }
    const unreachable = start(database, missing)
    unreachable.thread.hold(held('a'))
    expect(await unreachable.failed).toBeInstanceOf(Error)
    await run(database.render('drop table perdure.runs'))
    const homeless = start(database)
    homeless.thread.hold(held('a'))
    expect(String(await homeless.failed)).toContain('does not exist')
    await homeless.thread.stop()
  })
})

describe('the way to connect', () => {
  it('is taken from a pool with what that hides', () => {
    const pool = new pg.Pool({ host: 'h', user: 'u', password: 'secret', max: 3, ssl: { ca: 'c', key: 'private' } })
    const config = clientConfig(pool.options)
    expect({ ...config }).toMatchObject({ host: 'h', user: 'u', password: 'secret', keepAlive: true })
    expect(clonedConfig(config)).toMatchObject({ password: 'secret', ssl: { ca: 'c', key: 'private' } })
  })

  it('can not always be told to another thread', () => {
    expect(clonedConfig(clientConfig({ password: () => 'secret' }))).toBe(null)
    expect(clonedConfig(clientConfig({ host: 'h', user: 'u' }))).toMatchObject({ host: 'h', user: 'u' })
  })
})
