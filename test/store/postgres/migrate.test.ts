/** Which databases the store opens, which it refuses, what it makes of an empty one, and who may migrate when. */
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { realClock } from '../../../src/core/clock.ts'
import {
  ConfigurationError,
  StoreClockError,
  StoreCorruptError,
  StoreUnavailableError,
  StoreVersionError,
} from '../../../src/core/errors.ts'
import { Database } from '../../../src/store/postgres/database.ts'
import { postgres } from '../../../src/store/postgres/index.ts'
import { admitServer, type Found } from '../../../src/store/postgres/migrate.ts'
import { MockClock } from '../../../src/testing/index.ts'
import { emptySchema, openDatabase, stranger } from './databases.ts'
import { run, serverUrl } from './server.ts'

async function metaOf(schema: string): Promise<Readonly<Record<string, string>>> {
  const { rows } = await run(`select name, value from "${schema.replaceAll('"', '""')}".meta`)
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

/** A schema that a store has made, and closed. */
async function madeSchema(): Promise<string> {
  const { url, schema } = await emptySchema()
  const database = await openDatabase({ connection: url, schema })
  await database.close()
  return schema
}

async function opening(schema: string, options: Parameters<typeof openDatabase>[0] = {}): Promise<Database> {
  return await openDatabase({ connection: await serverUrl(), schema, ...options })
}

describe('an empty database', () => {
  it('gets the tables, and a note of what made them', async () => {
    const schema = await madeSchema()
    expect(await metaOf(schema)).toEqual({
      schema_version: '1',
      oldest_compatible: '1',
      clock: 'real',
      channel: `perdure:${schema}`,
    })
  })

  it('may be opened by ten at once: all start, one installs', async () => {
    const { schema } = await emptySchema()
    const opened = await Promise.all(Array.from({ length: 10 }, () => opening(schema)))
    for (const database of opened) {
      expect(await database.read((session) => session.query('select count(*) from perdure.runs'))).toEqual([[0]])
    }
  })

  it.each(['My-Schema', 'select', 'we"ird', "it's", 'a.b', 'ä'.repeat(31), '$&', '%s'])(
    'may call the schema %j',
    async (schema) => {
      onTestFinished(async () => {
        await run(`drop schema "${schema.replaceAll('"', '""')}" cascade`)
      })
      const database = await opening(schema)
      const rows = await database.write((transaction) => transaction.query(`select nextval('perdure.places')`))
      expect(rows).toEqual([[1]])
      expect(await metaOf(schema)).toMatchObject({ schema_version: '1' })
    },
  )

  it('is left alone by a migration that fails', async () => {
    const { schema } = await emptySchema()
    await run(`create schema "${schema}"; create table "${schema}".queues (mine text)`)
    await expect(opening(schema)).rejects.toThrow(/queues/)
    await expect(opening(schema)).rejects.toThrow(ConfigurationError)
    const { rows } = await run('select relname from pg_class where relnamespace = $1::regnamespace', [`"${schema}"`])
    expect(rows).toEqual([{ relname: 'queues' }])
  })
})

describe('a database that is opened again', () => {
  it('is not changed, nor locked', async () => {
    const schema = await madeSchema()
    const other = await stranger(await serverUrl())
    await other.query(`begin; lock table "${schema}".meta, "${schema}".runs in row exclusive mode`)
    await opening(schema)
    await other.query('rollback')
  })

  it('is refused with another kind of clock', async () => {
    const schema = await madeSchema()
    await expect(opening(schema, { clock: new MockClock(0) })).rejects.toThrow(StoreClockError)
    await opening(schema, { clock: realClock })
  })

  it('is refused if a newer version of the library has made it', async () => {
    const schema = await madeSchema()
    await run(`update "${schema}".meta set value = '999' where name = 'schema_version'`)
    await expect(opening(schema)).rejects.toThrow(StoreVersionError)
    await expect(opening(schema)).rejects.toMatchObject({ found: 999, supported: 1 })
  })

  it('is refused if nobody knows what it is', async () => {
    const schema = await madeSchema()
    await run(`delete from "${schema}".meta where name = 'schema_version'`)
    await expect(opening(schema)).rejects.toThrow(StoreCorruptError)
  })
})

describe('migrate: false', () => {
  it('refuses a database without tables, says what to do, and creates nothing', async () => {
    const { schema } = await emptySchema()
    await expect(opening(schema, { migrate: false })).rejects.toThrow(ConfigurationError)
    await expect(opening(schema, { migrate: false })).rejects.toThrow(/\.migrate\(\)/)
    const { rows } = await run('select 1 from pg_namespace where nspname = $1', [schema])
    expect(rows).toEqual([])
  })

  it('is for those who have migrate() called by somebody else', async () => {
    const { url, schema } = await emptySchema()
    const store = postgres(url, { schema, migrate: false })
    await expect(store.open()).rejects.toThrow(ConfigurationError)
    await postgres(url, { schema, migrate: false }).migrate()
    await store.open()
    await store.migrate()
    expect(await store.processes()).toEqual([])
    await store.close()
  })

  it('opens one that is up to date', async () => {
    await opening(await madeSchema(), { migrate: false })
  })
})

describe('a process that runs while a newer one migrates', () => {
  it('goes on with a schema that it can still use', async () => {
    const schema = await madeSchema()
    const database = await opening(schema)
    await run(`update "${schema}".meta set value = '2' where name = 'schema_version'`)
    await expect(database.read((session) => session.query('select 1 from perdure.gone'))).rejects.toThrow(
      StoreUnavailableError,
    )
    await database.read((session) => session.query('select 1 from perdure.runs'))
  })

  it('is told so as soon as it misses what is gone', async () => {
    const schema = await madeSchema()
    const database = await opening(schema)
    await run(`update "${schema}".meta set value = '2' where name in ('schema_version', 'oldest_compatible')`)
    await run(`alter table "${schema}".kv rename column value to content`)
    await expect(database.read((session) => session.query('select value from perdure.kv'))).rejects.toThrow(
      StoreVersionError,
    )
  })

  it('makes its plans anew', async () => {
    const schema = await madeSchema()
    const database = await opening(schema)
    const read = (): Promise<unknown> => database.read((session) => session.query('select * from perdure.kv'))
    await read()
    await run(`alter table "${schema}".kv add column extra text`)
    expect(await read()).toEqual([])
  })

  it('hears that the schema is gone as trouble', async () => {
    const schema = await madeSchema()
    const database = await opening(schema)
    await run(`drop schema "${schema}" cascade`)
    await expect(database.read((session) => session.query('select 1 from perdure.runs'))).rejects.toThrow(/dropped/)
    await expect(database.write((transaction) => transaction.query('delete from perdure.kv'))).rejects.toThrow(
      StoreUnavailableError,
    )
  })
})

describe('what no database can be opened with', () => {
  it.each([
    [
      'a server that is not there',
      (url: URL) => Object.assign(url, { port: '1' }),
      StoreUnavailableError,
      /ECONNREFUSED/,
    ],
    [
      'a host that is not there',
      (url: URL) => Object.assign(url, { hostname: 'nowhere.invalid' }),
      StoreUnavailableError,
      /nowhere/,
    ],
    ['a wrong password', (url: URL) => Object.assign(url, { password: 'x' }), ConfigurationError, /password/],
    [
      'a user who is not there',
      (url: URL) => Object.assign(url, { username: 'x' }),
      ConfigurationError,
      /Correct the user/,
    ],
    [
      'a database that is not there',
      (url: URL) => Object.assign(url, { pathname: '/x' }),
      ConfigurationError,
      /"x" does not exist/,
    ],
  ])('%s', async (_, change, error, words) => {
    const { schema } = await emptySchema()
    const connection = change(new URL(await serverUrl())).href
    await expect(openDatabase({ connection, schema })).rejects.toThrow(error)
    await expect(openDatabase({ connection, schema })).rejects.toThrow(words)
  })

  it('a server that does not answer', async () => {
    const { schema } = await emptySchema()
    const connection = { connectionString: 'postgres://user@192.0.2.1/app', connectionTimeoutMillis: 200 }
    await expect(openDatabase({ connection, schema })).rejects.toThrow(StoreUnavailableError)
  })

  it('a user without rights, unless somebody else creates the schema or grants them', async () => {
    const { schema } = await emptySchema()
    const user = `guest_${process.pid}`
    await run(`create role "${user}" login password 'guest'`)
    onTestFinished(async () => {
      await run(`drop owned by "${user}" cascade`)
      await run(`drop role "${user}"`)
    })
    const connection = Object.assign(new URL(await serverUrl()), { username: user, password: 'guest' }).href
    const open = (): Promise<Database> => openDatabase({ connection, schema })
    await expect(open()).rejects.toThrow(ConfigurationError)
    await expect(open()).rejects.toThrow(`create schema "${schema}" authorization "${user}"`)
    await run(`create schema "${schema}"`)
    await expect(open()).rejects.toThrow(`grant usage, create on schema "${schema}" to "${user}"`)
    await run(`grant usage, create on schema "${schema}" to "${user}"`)
    await open()
    await run(`revoke all on schema "${schema}" from "${user}"`)
    await expect(open()).rejects.toThrow(`grant usage on schema "${schema}"`)
    await expect(open()).rejects.toThrow(ConfigurationError)
  })

  it('a database of another encoding', async () => {
    const name = `latin_${process.pid}`
    await run(`create database "${name}" encoding 'LATIN1' template template0 locale_provider libc locale 'C'`)
    onTestFinished(async () => {
      await run(`drop database "${name}" (force)`)
    })
    const connection = Object.assign(new URL(await serverUrl()), { pathname: `/${name}` }).href
    await expect(openDatabase({ connection, schema: 'perdure' })).rejects.toThrow(/UTF8/)
  })

  it('a server that is too old', () => {
    const found: Found = {
      serverVersion: 130_004,
      serverName: '13.4',
      encoding: 'UTF8',
      synchronousCommit: 'on',
      arrayNulls: 'on',
      now: 0,
      hasSchema: false,
      hasMeta: false,
      user: 'me',
      database: 'app',
    }
    expect(() => admitServer(found)).toThrow(ConfigurationError)
    expect(() => admitServer(found)).toThrow(/13\.4.*14 or newer/)
    admitServer({ ...found, serverVersion: 140_000 })
  })

  it('and leaves no connection behind', async () => {
    const name = `opening-${process.pid}`
    const connection = { connectionString: await serverUrl(), application_name: name }
    const schema = await madeSchema()
    await expect(openDatabase({ connection, schema, clock: new MockClock(0) })).rejects.toThrow(StoreClockError)
    const count = async (): Promise<unknown> =>
      (await run('select pid from pg_stat_activity where application_name = $1', [name])).rows
    await expect.poll(count).toEqual([])
  })
})

describe('a lock on what is to be migrated', () => {
  it('is waited for', async () => {
    const { url, schema } = await emptySchema()
    const other = await stranger(url)
    await other.query(
      `begin; select pg_advisory_xact_lock(hashtextextended('perdure migration of ' || $1, 0))`.replace(
        '$1',
        pg.escapeLiteral(schema),
      ),
    )
    const open = opening(schema)
    const outcome = await Promise.race([open, new Promise((resolve) => setTimeout(resolve, 2_500, 'waits'))])
    expect(outcome).toBe('waits')
    await other.query('commit')
    expect(await open).toBeInstanceOf(Database)
  })
})
