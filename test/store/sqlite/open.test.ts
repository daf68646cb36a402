/** Which files the store opens, which it refuses, and that it leaves those alone. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { realClock } from '../../../src/core/clock.ts'
import {
  ConfigurationError,
  StoreClockError,
  StoreClosedError,
  StoreCorruptError,
  StoreUnavailableError,
  StoreVersionError,
} from '../../../src/core/errors.ts'
import { Database as StoreDatabase } from '../../../src/store/sqlite/database.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { exitOf, says, startChild } from './children.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newRun } from './requests.ts'

async function expectRefused(path: string, error: typeof StoreCorruptError | typeof StoreVersionError): Promise<void> {
  const before = readFileSync(path)
  const store = sqlite(path)
  await expect(store.open()).rejects.toBeInstanceOf(error)
  await store.close()
  expect(readFileSync(path).equals(before)).toBe(true)
}

/** A database that a store has made and closed. */
async function madeStore(): Promise<string> {
  const path = freshPath()
  const store = sqlite(path)
  await store.open()
  await enqueue(store, ...Array.from({ length: 200 }, (_, index) => newRun(`run ${index}`)))
  await store.close()
  return path
}

describe('paths', () => {
  it.each(['', ':memory:', 'file::memory:?cache=shared'])('refuses %j and points at memory()', (path) => {
    expect(() => sqlite(path)).toThrow(ConfigurationError)
    expect(() => sqlite(path)).toThrow(/memory\(\)/)
  })

  it.each([undefined, null, 5, {}, new URL('file:///app.db'), 'a\0b'])('refuses %j, which is no path', (path) => {
    expect(() => sqlite(path as never)).toThrow(ConfigurationError)
  })

  it('refuses a clock that is none', () => {
    expect(() => sqlite('app.db', { clock: 5 as never })).toThrow(ConfigurationError)
    expect(() => sqlite('app.db', { clock: Date as never })).toThrow(/MockClock/)
  })

  it('means the same file after the process has changed its directory', async () => {
    const [here, elsewhere] = [freshPath(), freshPath()]
    const before = process.cwd()
    onTestFinished(() => process.chdir(before))
    process.chdir(dirname(here))
    const store = sqlite(basename(here))
    process.chdir(dirname(elsewhere))
    await store.open()
    await store.close()
    expect([existsSync(here), existsSync(elsewhere)]).toEqual([true, false])
  })

  it('names a directory that is missing', async () => {
    await expect(sqlite(`${freshPath()}/below/store.db`).open()).rejects.toThrow(ConfigurationError)
  })

  // Root may write to any file.
  it.skipIf(process.getuid?.() === 0)('refuses a file that it may not write, at once', async () => {
    const path = await madeStore()
    chmodSync(path, 0o444)
    await expect(sqlite(path).open()).rejects.toThrow(StoreUnavailableError)
  })

  it('opens a file that is there but empty', async () => {
    const path = freshPath()
    writeFileSync(path, '')
    await enqueue(await openStore(path), newRun('a'))
  })
})

describe('files that are not ours', () => {
  it.each([
    ['a text', Buffer.from('not a database\n'.repeat(500))],
    ['a short file', Buffer.from('SQLite format 3\0')],
  ])('refuses %s', async (_, content) => {
    const path = freshPath()
    writeFileSync(path, content)
    await expectRefused(path, StoreCorruptError)
  })

  it.each([
    ['its first pages', 4096 + 10, 3 * 4096],
    ['a page that opening has no need to read', -4096, undefined],
  ])('refuses a database with damage in %s', async (_, from, to) => {
    const path = await madeStore()
    const content = readFileSync(path)
    content.subarray(from, to).fill(0xa5)
    writeFileSync(path, content)
    await expectRefused(path, StoreCorruptError)
  })

  it('refuses a database that was cut short', async () => {
    const path = await madeStore()
    writeFileSync(path, readFileSync(path).subarray(0, 3 * 4096))
    await expectRefused(path, StoreCorruptError)
  })

  it('refuses a newer schema', async () => {
    const path = await madeStore()
    const newer = await connect(path)
    newer.exec(`update perdure_meta set value = '999' where name = 'schema_version'`)
    newer.close()
    await expectRefused(path, StoreVersionError)
  })

  it('lives beside the tables of an application', async () => {
    const path = freshPath()
    const own = await connect(path)
    own.exec(`create table orders (id text); insert into orders values ('o1'); pragma application_id = 77`)
    own.close()
    const store = await openStore(path)
    await enqueue(store, newRun('a'))
    const again = await connect(path)
    expect(again.prepare('select id from orders').all()).toEqual([['o1']])
    expect(again.prepare('pragma application_id').get()).toEqual([77])
    again.close()
  })
})

describe('clocks', () => {
  const mockClock: Clock = {
    ...realClock,
    kind: 'mock',
    now: () => 5,
    at: () => ({ cancel() {} }),
    join: () => () => {},
  }

  it('refuses a real clock where a mock one was, and the reverse', async () => {
    const path = freshPath()
    await (await openStore(path, mockClock)).close()
    await expect(sqlite(path).open()).rejects.toBeInstanceOf(StoreClockError)
    const other = await madeStore()
    await expect(sqlite(other, { clock: mockClock }).open()).rejects.toBeInstanceOf(StoreClockError)
  })

  it('can be set until the store is opened', async () => {
    const store = sqlite(freshPath())
    store.setClock(mockClock)
    expect(store.clock).toBe(mockClock)
    await store.open()
    expect(() => store.setClock(realClock)).toThrow(ConfigurationError)
    await store.close()
    expect(() => store.setClock(realClock)).toThrow(ConfigurationError)
  })
})

describe('opening and closing', () => {
  it('is idempotent, in any interleaving, and a closed store opens again', async () => {
    const store = sqlite(freshPath())
    await Promise.all([store.open(), store.open(), store.close(), store.open()])
    await enqueue(store, newRun('a'))
    await Promise.all([store.close(), store.close()])
    await expect(store.runs(['a'])).rejects.toBeInstanceOf(StoreClosedError)
    expect(() => store.watch(() => {})).toThrow(StoreClosedError)
    await store.open()
    expect((await store.runs(['a']))[0]?.status).toBe('ENQUEUED')
    await store.close()
  })

  it('sets its connection to sync each commit to disk', async () => {
    const database = await StoreDatabase.open({ path: freshPath(), store: 'sqlite', clock: realClock })
    expect(database.prepare('pragma journal_mode').get()).toEqual(['wal'])
    expect(database.prepare('pragma synchronous').get()).toEqual([2])
    expect(database.prepare('pragma fullfsync').get()).toEqual([1])
    database.close()
  })

  it('lets ten processes create one file at the same moment (E-09)', async () => {
    const path = freshPath()
    const ids = Array.from({ length: 10 }, (_, index) => `run ${index}`)
    const children = ids.map((id) => startChild('open.ts', path, id))
    await Promise.all(children.map((child) => says(child, 'ready')))
    const ended = children.map(exitOf)
    for (const child of children) child.stdin?.end('go')
    expect(await Promise.all(ended)).toEqual(ids.map(() => 0))
    const store = await openStore(path)
    expect((await store.list({ limit: 100 })).map(({ id }) => id).toSorted()).toEqual(ids)
  })
})
