/** What `postgres()` takes, and how it refuses the rest. */
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ConfigurationError } from '../../../src/core/errors.ts'
import { postgres } from '../../../src/store/postgres/index.ts'

const URL = 'postgres://user:secret@db.example:6543/app'

describe('the connection', () => {
  it.each([undefined, null, 5, '', 'app', 'mysql://db/app', 'https://db/app', [], new Date(0)])(
    'refuses %j, which names no database',
    (connection) => {
      expect(() => postgres(connection as never)).toThrow(ConfigurationError)
      expect(() => postgres(connection as never)).toThrow(/postgres:\/\//)
    },
  )

  it('refuses a URL that is none without repeating the password in it', () => {
    const open = (): unknown => postgres('postgres://user:secret@:x')
    expect(open).toThrow(ConfigurationError)
    expect(open).not.toThrow(/secret/)
    expect(() => postgres({ connectionString: 'user:secret@db/app' })).not.toThrow(/secret/)
  })

  it('refuses a client, and says what it wants', () => {
    expect(() => postgres(new pg.Client(URL) as never)).toThrow(/pg\.Pool/)
  })

  it('takes a URL, the configuration of a pool, or a pool', async () => {
    const pool = new pg.Pool({ host: 'db.example', port: 6543, database: 'app' })
    onTestFinished(() => pool.end())
    expect(postgres(URL).name).toBe('postgres db.example:6543/app')
    expect(postgres(URL.replace('postgres:', 'postgresql:')).name).toBe('postgres db.example:6543/app')
    expect(postgres({ connectionString: URL }).name).toBe('postgres db.example:6543/app')
    expect(postgres({ host: 'db.example', port: 6543, database: 'app' }).name).toBe('postgres db.example:6543/app')
    expect(postgres(pool, { schema: 'mine' }).name).toBe('postgres db.example:6543/app, schema mine')
  })
})

describe('the options', () => {
  it.each([
    ['schema', 'x'.repeat(64)],
    ['schema', 'ä'.repeat(32)],
    ['schema', ''],
    ['schema', 'a\0b'],
    ['schema', 'a\ud800b'],
    ['schema', 'pg_mine'],
    ['schema', 5],
    ['notify', 'no'],
    ['listenUrl', 'localhost'],
    ['listenUrl', ''],
    ['migrate', 0],
    ['prepare', null],
    ['clock', Date],
  ])('refuses %s: %j', (option, value) => {
    const open = (): unknown => postgres(URL, { [option]: value })
    expect(open).toThrow(ConfigurationError)
    expect(open).toThrow(new RegExp(`postgres\\.${option}`))
  })

  it('answers a misspelt one with the one that was meant', () => {
    expect(() => postgres(URL, { scheme: 'mine' } as never)).toThrow(/'schema'/)
    expect(() => postgres(URL, null as never)).toThrow(ConfigurationError)
  })

  it.each(['x'.repeat(63), 'ä'.repeat(31), 'My-Schema', 'select', 'we"ird', "it's", 'a.b', ' '])(
    'takes the schema %j',
    (schema) => {
      expect(postgres(URL, { schema }).name).toContain(schema)
    },
  )
})
