/** Starts in transactions of the caller's, through engines and clients: `tx` and `startSql`. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client, Engine, type EngineOptions, type Logger, queue, workflow } from 'perdure'
import { memory } from 'perdure/memory'
import { postgres } from 'perdure/postgres'
import { MockClock } from 'perdure/testing'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { type FreshSchema, freshSchema, run as runOnServer } from './server.ts'

const greet = workflow('greet', async (_, name: string) => `hello ${name}`)
const definitions = [greet]
const queues = [queue('mail'), queue('tenants', { partitioned: true })]

interface Stage {
  readonly schema: FreshSchema
  readonly engine: Engine<typeof definitions>
  /** A session with an open transaction. */
  readonly tx: pg.Client
}

async function stage(options: Partial<EngineOptions<typeof definitions>> = {}): Promise<Stage> {
  const schema = await freshSchema()
  const engine = new Engine({ store: postgres(schema.url, { schema: schema.schema }), definitions, queues, ...options })
  const tx = new pg.Client({ connectionString: schema.url })
  await tx.connect()
  await tx.query('begin')
  onTestFinished(async () => {
    await tx.end()
    await engine.shutdown()
    await schema.destroy()
  })
  return { schema, engine, tx }
}

describe('start with tx', () => {
  test('is part of the transaction', async () => {
    const { engine, tx } = await stage()
    await engine.launch()
    const gone = await engine.start(greet, 'nobody', { tx })
    await tx.query('rollback')
    await tx.query('begin')
    const plain = await engine.start(greet, 'Ada', { tx, id: 'plain' })
    const queued = await engine.start('greet', 'Grace', {
      tx,
      queue: 'mail',
      delay: 1,
      dedupId: 'd',
      kv: { greeted: 1 },
    })
    const keyed = await engine.start(greet, 'Mary', { tx, queue: 'tenants', partitionKey: 'k' })
    expect([plain.id, plain.newlySubmitted, queued.newlySubmitted]).toEqual(['plain', true, true])
    expect(await engine.runs.get('plain')).toBeUndefined()
    expect(await engine.kv.get('greeted')).toBeUndefined()
    await tx.query('commit')
    expect(await Promise.all([plain, queued, keyed].map((run) => run.result({ timeout: '20s' })))).toEqual([
      ...['hello Ada', 'hello Grace', 'hello Mary'],
    ])
    expect(await engine.kv.get('greeted')).toBe(1)
    await expect(gone.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
  })

  test('always enqueues, even what would run here at once', async () => {
    const { engine, tx } = await stage({ listenQueues: [] })
    const handles = [
      await engine.start(greet, 'a', { tx }),
      await engine.start(greet, 'b', { tx, queue: 'mail' }),
      await engine.start(greet, 'c', { tx, queue: 'mail', delay: '1h' }),
    ]
    await tx.query('commit')
    expect(await Promise.all(handles.map((run) => run.status()))).toEqual(['ENQUEUED', 'ENQUEUED', 'DELAYED'])
  })

  test('throws what a start throws, and leaves the transaction as it is', async () => {
    const { engine, tx } = await stage()
    await engine.start(greet, 'a', { id: 'known', queue: 'mail', dedupId: 'd' })
    await expect(engine.start(greet, 'b', { tx, id: 'known' })).rejects.toMatchObject({
      ...{ code: 'INPUT_MISMATCH', runId: 'known', definition: 'greet', existingDefinition: 'greet' },
    })
    await expect(engine.start(greet, 'a', { tx, queue: 'mail', dedupId: 'd' })).rejects.toMatchObject({
      ...{ code: 'QUEUE_DEDUPLICATED', queue: 'mail', dedupId: 'd', holder: 'known' },
    })
    const same = await engine.start(greet, 'a', { tx, id: 'known' })
    const holder = await engine.start(greet, 'z', { tx, queue: 'mail', dedupId: 'd', dedupPolicy: 'returnExisting' })
    expect([same.id, same.newlySubmitted, holder.id, holder.newlySubmitted]).toEqual(['known', false, 'known', false])
    await expect(engine.start(greet, 'a', { tx, queue: 'nowhere' })).rejects.toMatchObject({ code: 'UNKNOWN_QUEUE' })
    await tx.query('commit')
  })

  test('keeps a start of the same run outside waiting until it is known what becomes of it', async () => {
    const { engine, tx } = await stage()
    for (const [ending, newlySubmitted] of [
      ['rollback', true],
      ['commit', false],
    ] as const) {
      await tx.query('begin')
      await engine.start(greet, 'a', { tx, id: ending })
      let answered = false
      const outside = engine.start(greet, 'a', { id: ending, queue: 'mail' }).finally(() => {
        answered = true
      })
      const beside = await engine.start(greet, 'a', { queue: 'mail' })
      expect(beside.newlySubmitted).toBe(true)
      await setTimeout(300)
      expect(answered).toBe(false)
      await tx.query(ending)
      expect((await outside).newlySubmitted).toBe(newlySubmitted)
    }
  })

  test('of many: all or none, in one transaction', async () => {
    const { engine, tx } = await stage()
    const item = (input: string, id: string) => ({ input, options: { tx, id } })
    const handles = await engine.startMany(greet, [item('a', 'a'), item('b', 'b'), item('a', 'a')])
    expect(handles.map(({ id, newlySubmitted }) => [id, newlySubmitted])).toEqual([
      ['a', true],
      ['b', true],
      ['a', false],
    ])
    await expect(engine.startMany(greet, [item('c', 'c'), item('other', 'a')])).rejects.toMatchObject({
      ...{ code: 'INPUT_MISMATCH', runId: 'a' },
    })
    expect(await engine.startMany(greet, [])).toEqual([])
    const mixed = [item('d', 'd'), { input: 'e', options: { id: 'e' } }]
    await expect(engine.startMany(greet, mixed)).rejects.toMatchObject({
      code: 'CONFIGURATION',
      option: 'startMany.tx',
    })
    await tx.query('commit')
    expect((await engine.runs.list()).runs.map(({ id }) => id).sort()).toEqual(['a', 'b'])
  })

  test('warns of a run that nobody will ever run', async () => {
    const warnings: string[] = []
    const silent = (): void => {}
    const logger: Logger = {
      debug: silent,
      info: silent,
      error: silent,
      warn: (message) => void warnings.push(String(message)),
    }
    const { engine, tx } = await stage({ logger })
    await engine.launch()
    await engine.start(greet, 'a', { tx, queue: 'tenants' })
    expect(warnings).toEqual([expect.stringContaining('partition')])
  })

  test('is refused for a pool, and where the store has no transactions of its callers', async () => {
    const { engine, tx, schema } = await stage()
    const pool = new pg.Pool({ connectionString: schema.url })
    const problem = { code: 'CONFIGURATION', option: 'start.tx' }
    await expect(engine.start(greet, 'a', { tx: pool })).rejects.toMatchObject(problem)
    // @ts-expect-error no client
    await expect(engine.start(greet, 'a', { tx: {} })).rejects.toMatchObject(problem)
    // @ts-expect-error no client
    await expect(engine.start(greet, 'a', { tx: null })).rejects.toMatchObject(problem)
    await pool.end()
    const file = await mkdtemp(join(tmpdir(), 'perdure-'))
    onTestFinished(() => rm(file, { recursive: true }))
    for (const store of [memory(), sqlite(join(file, 'runs.db'))]) {
      const other = new Engine({ store, definitions })
      await expect(other.start(greet, 'a', { tx })).rejects.toMatchObject({
        ...problem,
        message: expect.stringContaining('perdure/postgres'),
      })
      expect((await other.runs.list()).runs).toEqual([])
      await other.shutdown()
    }
  })

  test('is refused in a body and in a step', async () => {
    const schema = await freshSchema()
    const tx = { query: () => [] }
    const child = workflow('child', async () => {})
    const inBody = workflow('in body', async (ctx) => {
      await ctx.start(child, undefined, { tx })
    })
    const inStep = workflow('in step', async (ctx) => {
      await ctx.step('stage', async (step) => {
        await step.effects.start('child', undefined, { tx })
      })
    })
    const engine = new Engine({
      store: postgres(schema.url, { schema: schema.schema }),
      definitions: [child, inBody, inStep],
    })
    await engine.launch()
    onTestFinished(async () => {
      await engine.shutdown()
      await schema.destroy()
    })
    for (const definition of [inBody, inStep]) {
      const run = await engine.start(definition)
      await expect(run.result({ timeout: '20s' })).rejects.toMatchObject({
        cause: { code: 'CONFIGURATION', option: 'start.tx' },
      })
    }
  })

  test('takes the tx of ctx.transaction, whose commit is that of the step', async () => {
    const schema = await freshSchema()
    const order = workflow('order', (ctx, id: string) =>
      ctx.transaction('place', async (tx) => {
        const run = await client.start('greet', id, { tx, id })
        if (id === 'refused') throw new Error('out of stock')
        return run.newlySubmitted
      }),
    )
    const store = postgres(schema.url, { schema: schema.schema })
    const client = new Client({ store })
    const engine = new Engine({ store, definitions: [order, greet] })
    onTestFinished(async () => {
      await client.close()
      await engine.shutdown()
      await schema.destroy()
    })
    await engine.launch()
    expect(await (await engine.start(order, 'placed')).result({ timeout: '20s' })).toBe(true)
    expect(await engine.handle(greet, 'placed').result({ timeout: '20s' })).toBe('hello placed')
    await expect((await engine.start(order, 'refused')).result({ timeout: '20s' })).rejects.toThrow()
    expect(await engine.runs.get('refused')).toBeUndefined()
  })

  test('goes by the clock of the store', async () => {
    const schema = await freshSchema()
    const clock = new MockClock()
    const { engine, tx } = await stage({ store: postgres(schema.url, { schema: schema.schema, clock }) })
    await engine.launch()
    const run = await engine.start(greet, 'a', { tx, queue: 'mail', delay: '1h' })
    const call = await engine.startSql(greet, 'b', { queue: 'mail', delay: '2h' })
    await tx.query(call.text, call.values)
    await tx.query('commit')
    await clock.advance('61m')
    expect([await run.status(), await engine.handle(call.id).status()]).toEqual(['SUCCESS', 'DELAYED'])
    await clock.advance('1h')
    expect(await engine.handle(call.id).status()).toBe('SUCCESS')
    await engine.shutdown()
    await schema.destroy()
  })
})

describe('startSql', () => {
  test('of a client, by name', async () => {
    const { schema, engine, tx } = await stage()
    await engine.launch()
    const client = new Client({ store: postgres(schema.url, { schema: schema.schema }) })
    const call = await client.startSql('greet', 'Ada', { queue: 'mail' })
    expect((await tx.query(call)).rows).toEqual([{ id: call.id, newly_submitted: true, conflict: null }])
    const started = await client.start('greet', 'Grace', { tx })
    await tx.query('commit')
    expect(await client.handle(call.id).result({ timeout: '20s' })).toBe('hello Ada')
    expect(await started.result({ timeout: '20s' })).toBe('hello Grace')
    await client.close()
    await expect(client.startSql('greet', 'a')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  test('starts nothing by itself, and checks as a start does', async () => {
    const { engine } = await stage()
    await engine.startSql(greet, 'a', { id: 'a' })
    expect((await engine.runs.list()).runs).toEqual([])
    const refused: readonly [object, object][] = [
      [{ id: 'a~1' }, { code: 'INVALID_ID' }],
      [{ queue: 'nowhere' }, { code: 'UNKNOWN_QUEUE' }],
      [{ delay: 1 }, { code: 'CONFIGURATION', option: 'start.delay' }],
      [{ onConflict: 'ignore' }, { code: 'CONFIGURATION', option: 'startSql.onConflict' }],
      [{ onconflict: 'tell' }, { code: 'CONFIGURATION', option: 'startSql.onconflict' }],
      [{ tx: {} }, { code: 'CONFIGURATION', option: 'startSql.tx' }],
      [[], { code: 'CONFIGURATION', option: 'startSql' }],
    ]
    for (const [options, error] of refused) {
      await expect(engine.startSql(greet, 'a', options)).rejects.toMatchObject(error)
    }
  })

  test('is refused where there is no PostgreSQL', async () => {
    const engine = new Engine({ store: memory(), definitions })
    await expect(engine.startSql(greet, 'a')).rejects.toMatchObject({ code: 'CONFIGURATION', option: 'startSql' })
    await engine.shutdown()
  })
})

test('the same run by tx, by startSql, by SQL and by a plain start: whoever comes first starts it', async () => {
  const { schema, tx } = await stage()
  await tx.query('commit')
  const bySql = `select id, newly_submitted, conflict from "${schema.schema}".start('greet', $1, '{"id":"a"}')`
  const input = '{"first":"Ada","last":"Lovelace"}'
  const person = workflow('greet', async (_, name: { readonly first: string; readonly last: string }) => name)
  const client = new Client({ store: postgres(schema.url, { schema: schema.schema }) })
  await client.queues.list()
  expect((await runOnServer(bySql, [input])).rows).toEqual([{ id: 'a', newly_submitted: true, conflict: null }])
  const same = { last: 'Lovelace', first: 'Ada' }
  expect((await client.start(person, same, { id: 'a', tx })).newlySubmitted).toBe(false)
  const { text, values } = await client.startSql(person, same, { id: 'a' })
  expect((await tx.query(text, values)).rows).toEqual([{ id: 'a', newly_submitted: false, conflict: null }])
  // Only now the library fills in the hash of the input, which the others then compare.
  expect((await client.start(person, same, { id: 'a' })).newlySubmitted).toBe(false)
  expect((await client.start(person, same, { id: 'a', tx })).newlySubmitted).toBe(false)
  expect((await runOnServer(bySql, [' { "last" : "Lovelace", "first" : "Ada" }'])).rows[0]).toMatchObject({
    conflict: null,
  })
  const other = { first: 'Ada', last: 'Byron' }
  await expect(client.start(person, other, { id: 'a', tx })).rejects.toMatchObject({ code: 'INPUT_MISMATCH' })
  expect((await runOnServer(bySql, [JSON.stringify(other)])).rows[0]).toMatchObject({ conflict: 'mismatch' })
  await client.close()
})
