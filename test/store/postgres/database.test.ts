/** Transactions of the store: when they are run again, and what they answer when something is in their way. */
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StoreCorruptError, StoreUnavailableError } from '../../../src/core/errors.ts'
import { text } from '../../../src/store/columns.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { Interference, LockedError } from '../../../src/store/postgres/session.ts'
import { emptySchema, openDatabase, stranger } from './databases.ts'
import { Relay } from './relay.ts'
import { run, serverUrl } from './server.ts'

const PUT = 'insert into perdure.kv (key, value, hash) values ($1, $2, $2)'
const KEYS = 'select key from perdure.kv order by key'
const LOCK = 'select key from perdure.kv where key = $1 for update'

async function keys(database: Database): Promise<readonly string[]> {
  return (await database.read((session) => session.query(KEYS))).map((row) => text(row[0]))
}

async function put(database: Database, ...names: readonly string[]): Promise<void> {
  await database.write(async (transaction) => {
    for (const name of names) await transaction.query(PUT, [name, 'x'])
  })
}

/** How many transactions there are at the moment, of all stores. */
/** Other tests use the server, too. */
async function isInTransaction(backend: unknown): Promise<boolean> {
  const { rows } = await run(`select state from pg_stat_activity where pid = $1`, [backend])
  return rows.some(({ state }) => String(state).startsWith('idle in transaction'))
}

describe('a transaction', () => {
  it('is whole or not at all', async () => {
    const database = await openDatabase()
    await put(database, 'a', 'b')
    let backend: unknown
    const failing = database.write(async (transaction) => {
      const [row] = await transaction.query('select pg_catalog.pg_backend_pid()')
      backend = row?.[0]
      expect(await isInTransaction(backend)).toBe(true)
      await transaction.query(PUT, ['c', 'x'])
      throw new RangeError('no')
    })
    await expect(failing).rejects.toThrow(new RangeError('no'))
    expect(await keys(database)).toEqual(['a', 'b'])
    expect(await isInTransaction(backend)).toBe(false)
  })

  it('runs again over fresh rows after an interference', async () => {
    const database = await openDatabase()
    let tries = 0
    await database.write(async (transaction) => {
      tries += 1
      await transaction.query(PUT, [`a${tries}`, 'x'])
      if (tries < 3) throw new Interference('a test')
    })
    expect(await keys(database)).toEqual(['a3'])
  })

  it('gives up when it is always interfered with, as trouble that passes', async () => {
    const database = await openDatabase()
    const unlucky = database.write(() => Promise.reject(new Interference('a test')))
    await expect(unlucky).rejects.toThrow(StoreUnavailableError)
  })

  it('does not take a failed statement for a success because nobody heard of it', async () => {
    const database = await openDatabase()
    const careless = database.write(async (transaction) => {
      await transaction.query(PUT, ['a', 'x'])
      await transaction.query(PUT, ['a', 'x']).catch(() => {})
    })
    await expect(careless).rejects.toThrow(/rolled back/)
    expect(await keys(database)).toEqual([])
  })

  it('rejects what the database refuses with its own error', async () => {
    const database = await openDatabase()
    await expect(put(database, 'a', 'a')).rejects.toMatchObject({ code: '23505' })
    await expect(put(database, 'a\0b')).rejects.toMatchObject({ code: '22021' })
    expect(await keys(database)).toEqual([])
  })

  it('sends statements that nobody waits for in one go, in order', async () => {
    const database = await openDatabase()
    const rows = await database.write((transaction) =>
      Promise.all(['a', 'b', 'c'].map((key) => transaction.query(`${PUT} returning key`, [key, 'x']))),
    )
    expect(rows.flat(2)).toEqual(['a', 'b', 'c'])
  })

  it('writes in a database whose transactions only read and do not wait for the disk unless told to', async () => {
    const fresh = await emptySchema()
    const options =
      '-c default_transaction_read_only=on -c synchronous_commit=off -c default_transaction_isolation=serializable'
    const database = await openDatabase({ connection: { connectionString: fresh.url, options }, schema: fresh.schema })
    const settings = await database.write(async (transaction) => {
      await transaction.query(PUT, ['a', 'x'])
      return transaction.query(
        `select current_setting('synchronous_commit'), current_setting('transaction_isolation'), current_setting('jit')`,
      )
    })
    expect(settings).toEqual([['on', 'read committed', 'off']])
    expect(await database.read((session) => session.query(`select current_setting('synchronous_commit')`))).toEqual([
      ['off'],
    ])
  })
})

describe('a lock that somebody else holds', () => {
  it('is waited for no longer than allowed', async () => {
    const { url, schema } = await emptySchema()
    const database = await openDatabase({ connection: url, schema })
    await put(database, 'a')
    const other = await stranger(url)
    await other.query(`begin; update "${schema}".kv set value = 'y'`)
    const start = performance.now()
    const locked = database.write((transaction) => transaction.query(LOCK, ['a']))
    await expect(locked).rejects.toThrow(LockedError)
    expect(performance.now() - start).toBeLessThan(1_000)
    const patient = database.write((transaction) => transaction.query(LOCK, ['a']), { lockTimeoutMs: 20_000 })
    await other.query('commit')
    expect(await patient).toEqual([['a']])
  })

  it('that waits for this one is a LockedError, too', async () => {
    const database = await openDatabase()
    await put(database, 'a', 'b')
    const both = (first: string, second: string, met: () => Promise<void>): Promise<unknown> =>
      database.write(
        async (transaction) => {
          await transaction.query(LOCK, [first])
          await met()
          return await transaction.query(LOCK, [second])
        },
        { lockTimeoutMs: 20_000 },
      )
    let arrived = 0
    const met = async (): Promise<void> => {
      arrived += 1
      while (arrived < 2) await new Promise((resolve) => setImmediate(resolve))
    }
    const ends = await Promise.allSettled([both('a', 'b', met), both('b', 'a', met)])
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(ends.find((end) => end.status === 'rejected')).toMatchObject({ reason: expect.any(LockedError) })
  })
})

describe('columns', () => {
  it('are read the same whatever the application has told its driver', async () => {
    pg.types.setTypeParser(pg.types.builtins.INT8, (value) => BigInt(value))
    onTestFinished(() => pg.types.setTypeParser(pg.types.builtins.INT8, String))
    const database = await openDatabase()
    const rows = await database.read((session) =>
      session.query(`select 9007199254740991::bigint, 1::int, true, null::bigint, '{"a": 1}'::jsonb, '[1]'::json,
        array[1, null]::bigint[], array['a"b,', null, 'NULL']::text[], 'x'`),
    )
    const arrays = [
      [1, null],
      ['a"b,', null, 'NULL'],
    ]
    expect(rows).toEqual([[9007199254740991, 1, true, null, '{"a": 1}', '[1]', ...arrays, 'x']])
  })

  it('take lists of any text', async () => {
    const database = await openDatabase()
    const odd = ['', 'NULL', 'a,b', '{}', '"', '\\', "'", 'ä', '💾', '\u0001', ' ']
    const rows = await database.read((session) => session.query('select unnest($1::text[])', [odd]))
    expect(rows.flat()).toEqual(odd)
  })

  it('that hold what was never written are reported as corrupt', async () => {
    const database = await openDatabase()
    const reading = database.read(async (session) => {
      const [row] = await session.query('select 1')
      return text(row?.[0])
    })
    await expect(reading).rejects.toThrow(StoreCorruptError)
  })
})

describe('the instant of a transaction', () => {
  it('is that of the database, and the clock of the store goes with it', async () => {
    const database = await openDatabase()
    const instant = await database.write(async (transaction) => transaction.instant(123_456))
    expect(instant).toBe(123_456)
    expect(database.clock.now()).toBeGreaterThanOrEqual(123_456)
    expect(database.clock.now()).toBeLessThan(133_456)
  })
})

describe('a connection', () => {
  it('that is ended by the server is trouble that passes', async () => {
    const database = await openDatabase()
    await put(database, 'a')
    const killed = database.write(async (transaction) => {
      const [row] = await transaction.query('select pg_backend_pid()')
      await run('select pg_terminate_backend($1)', [row?.[0]])
      await transaction.query(PUT, ['b', 'x'])
    })
    await expect(killed).rejects.toThrow(StoreUnavailableError)
    await put(database, 'c')
    expect(await keys(database)).toEqual(['a', 'c'])
  })

  it('that was ended while idle is replaced', async () => {
    const name = `idle-${process.pid}`
    const database = await openDatabase({
      connection: { connectionString: await serverUrl(), application_name: name },
      schema: (await emptySchema()).schema,
    })
    await put(database, 'a')
    await run('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [name])
    await expect.poll(() => keys(database).catch(() => [])).toEqual(['a'])
  })

  it('that has forgotten prepared statements is replaced, without a word', async () => {
    const database = await openDatabase()
    await put(database, 'a')
    await database.read((session) => session.query('deallocate all'))
    await put(database, 'b')
    await database.read((session) => session.query('deallocate all'))
    expect(await keys(database)).toEqual(['a', 'b'])
  })

  it('that says nothing any more is given up', async () => {
    const { url, schema } = await emptySchema()
    const relay = await Relay.open(url)
    const database = await openDatabase({ connection: relay.url, schema })
    await put(database, 'a')
    relay.silence()
    const unheard = database.write((transaction) => transaction.query(PUT, ['b', 'x']), { answerWithinMs: 100 })
    await expect(unheard).rejects.toThrow(StoreUnavailableError)
    relay.heal()
    expect(await keys(database)).toEqual(['a'])
  })

  it('that is cut after COMMIT went up leaves the outcome unknown, which is trouble that passes', async () => {
    const { url, schema } = await emptySchema()
    const relay = await Relay.open(url)
    const database = await openDatabase({ connection: relay.url, schema })
    const unanswered = database.write(async (transaction) => {
      await transaction.query(PUT, ['a', 'x'])
      relay.cutAfterNext('COMMIT')
    })
    await expect(unanswered).rejects.toThrow(StoreUnavailableError)
    await expect.poll(() => keys(database)).toEqual(['a'])
  })
})

describe('a pool', () => {
  it('that was given is used as it is, and not ended', async () => {
    const { url, schema } = await emptySchema()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    const database = await openDatabase({ connection: pool, schema })
    await put(database, 'a')
    await Promise.all(['b', 'c', 'd'].map((key) => put(database, key)))
    expect(await database.write((tx) => Promise.all([tx.query(KEYS), tx.query('select 1')]))).toHaveLength(2)
    await database.close()
    expect(pool.listenerCount('error')).toBe(0)
    expect((await pool.query(`select count(*)::int as n from "${schema}".kv`)).rows).toEqual([{ n: 4 }])
    expect((await pool.query('show search_path')).rows).toEqual([{ search_path: '"$user", public' }])
  })

  it('may serve several schemas at once', async () => {
    const [one, two] = [await emptySchema(), await emptySchema()]
    const pool = new pg.Pool({ connectionString: one.url, max: 1 })
    onTestFinished(() => pool.end())
    const databases = [
      await openDatabase({ connection: pool, schema: one.schema }),
      await openDatabase({ connection: pool, schema: two.schema }),
    ]
    for (const [index, database] of databases.entries()) await put(database, `${index}`)
    expect(await Promise.all(databases.map(keys))).toEqual([['0'], ['1']])
  })

  it('whose statements may have no names does without', async () => {
    const name = `nameless-${process.pid}`
    const { url, schema } = await emptySchema()
    const connection = { connectionString: url, application_name: name, max: 1 }
    const database = await openDatabase({ connection, schema, prepare: false })
    await put(database, 'a')
    const prepared = await database.read((session) => session.query('select name from pg_prepared_statements'))
    expect(prepared).toEqual([])
  })

  it('that leads to a hostile search path is not led astray', async () => {
    const { url, schema } = await emptySchema()
    const bait = (await emptySchema()).schema
    await run(`create schema "${bait}"`)
    await run(`create table "${bait}".runs (seq text); create table "${bait}".meta (name text, value text)`)
    await run(`create function "${bait}".floor(double precision) returns double precision language sql as 'select 0.0'`)
    const options = `-c search_path="${bait}",pg_catalog`
    const database = await openDatabase({ connection: { connectionString: url, options }, schema })
    await put(database, 'a')
    expect(await keys(database)).toEqual(['a'])
    expect(Math.abs(database.clock.now() - Date.now())).toBeLessThan(5_000)
  })
})
