/** Engines over what users make of databases, roles and pools. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Client, ConfigurationError, Engine, queue, StoreUnavailableError, workflow } from '../../../src/index.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { emptySchema, stranger } from './databases.ts'

const nap = workflow('nap', async (ctx, ms: number) => ctx.step('sleep', () => setTimeout(ms, 'slept')))

async function engineOver(connection: string | pg.Pool | pg.PoolConfig, schema: string, lease = 30_000) {
  const engine = new Engine({
    store: postgres(connection, { schema }),
    definitions: [nap],
    queues: [queue('limited', { globalConcurrency: 1, lease })],
    logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  })
  onTestFinished(() => engine.shutdown({ timeout: 0 }))
  await engine.launch()
  return engine
}

function smallPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  onTestFinished(() => pool.end())
  return pool
}

describe('settings of the role', () => {
  it('default_transaction_read_only: runs of limited queues are claimed, and keep their leases', async () => {
    const { url, schema } = await emptySchema()
    const options = '-c default_transaction_read_only=on -c default_transaction_isolation=serializable'
    const engine = await engineOver({ connectionString: url, options }, schema, 1_500)
    const watcher = await engineOver(url, schema, 1_500)
    const run = await engine.start(nap, 4_000, { queue: 'limited' })
    expect(await run.result()).toBe('slept')
    expect(await watcher.runs.get(run.id)).toMatchObject({ attempt: 1, epoch: 0 })
  }, 20_000)

  it('standard_conforming_strings = off, with a schema of any name', async () => {
    const { url, schema } = await emptySchema()
    const odd = `${schema}\\"'`
    const options = '-c standard_conforming_strings=off'
    const engine = await engineOver({ connectionString: url, options }, odd)
    expect(await (await engine.start(nap, 1)).result()).toBe('slept')
    const other = await engineOver(url, odd)
    expect(await (await other.start(nap, 1)).result()).toBe('slept')
    const { rows } = await (await stranger(url)).query(
      `select newly_submitted from "${odd.replaceAll('"', '""')}".start('nap', '1')`,
    )
    expect(rows).toEqual([{ newly_submitted: true }])
  })

  it('a setting that the server does not know is refused as that', async () => {
    const { url, schema } = await emptySchema()
    const launch = engineOver({ connectionString: url, options: '-c nonsense=1' }, schema)
    await expect(launch).rejects.toThrow(ConfigurationError)
    await expect(launch).rejects.toThrow(/nonsense/)
  })

  it('array_nulls = off is refused, as null would be a text', async () => {
    const { url, schema } = await emptySchema()
    const launch = engineOver({ connectionString: url, options: '-c array_nulls=off' }, schema)
    await expect(launch).rejects.toThrow(ConfigurationError)
    await expect(launch).rejects.toThrow(/array_nulls/)
  })
})

it('parsers of types that the process has set change nothing of what the store reads', async () => {
  const { url, schema } = await emptySchema()
  const types = [16, 20, 21, 23, 25, 114, 701, 1005, 1007, 1009, 1016]
  const before = types.map((type) => [type, pg.types.getTypeParser(type)] as const)
  for (const type of types) pg.types.setTypeParser(type, (value) => ({ value }))
  onTestFinished(() => {
    for (const [type, parser] of before) pg.types.setTypeParser(type, parser)
  })
  const engine = await engineOver(url, schema)
  const run = await engine.start(nap, 1, { queue: 'limited' })
  expect(await run.result()).toBe('slept')
  expect(await engine.runs.get(run.id)).toMatchObject({ id: run.id, attempt: 1, queue: 'limited', input: 1 })
  const waits = await engine.start(nap, 60_000, { queue: 'limited' })
  const behind = await engine.start(nap, 1, { queue: 'limited' })
  await expect.poll(() => waits.status()).toBe('PENDING')
  const explanation = await engine.runs.explain(behind.id)
  expect(explanation?.reasons.map(({ type }) => type)).toEqual(['globalConcurrency'])
})

describe('a pool', () => {
  it('with binary: true is refused', async () => {
    const { url, schema } = await emptySchema()
    // `pg` knows it, its types don't.
    const binary = Object.assign({ connectionString: url }, { binary: true })
    const launch = engineOver(binary, schema)
    await expect(launch).rejects.toThrow(ConfigurationError)
    await expect(launch).rejects.toThrow(/binary/)
  })

  it('E-15, F-02: whose connections were taken and not given back holds up no shutdown', async () => {
    const { url, schema } = await emptySchema()
    const pool = smallPool(url, 2)
    const engine = await engineOver(pool, schema)
    const taken = await Promise.all([pool.connect(), pool.connect()])
    await setTimeout(1_500)
    const start = performance.now()
    await engine.shutdown({ timeout: 100 })
    expect(performance.now() - start).toBeLessThan(12_000)
    expect(pool.waitingCount).toBeGreaterThan(0)
    for (const client of taken) client.release()
    // What was asked for came back.
    await expect.poll(() => pool.waitingCount === 0 && pool.idleCount === pool.totalCount).toBe(true)
  }, 30_000)

  it('E-15: that gives no connection is said to be exhausted', async () => {
    const { url, schema } = await emptySchema()
    const pool = smallPool(url, 1)
    const client = new Client({ store: postgres(pool, { schema }) })
    onTestFinished(() => client.close())
    await client.queues.list()
    const taken = await pool.connect()
    onTestFinished(() => taken.release())
    const asked = client.queues.list()
    await expect(asked).rejects.toThrow(StoreUnavailableError)
    await expect(asked).rejects.toThrow(/all 1 are in use.*release/)
  }, 30_000)
})
