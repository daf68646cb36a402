/** `kv`: values under keys, each change one atomic commit. */
import { describe, expect, it } from 'vitest'
import { Client, Engine, InvalidIdError, SerializationError, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { KINDS } from './places.ts'
import { ended, refusal } from './support.ts'

const logger = silent

/** A value as a caller without types may give it. */
const untyped = (value: unknown): never => value as never

describe.each(KINDS)('kv on $kind', ({ place }) => {
  const none = workflow('none', async () => {})

  it('puts, gets and deletes values of every sort', async () => {
    const store = place().connect()
    const { kv } = ended(new Engine({ store, definitions: [none], logger }))
    expect(await kv.get('k')).toBeUndefined()
    expect(await kv.delete('k')).toBe(false)
    const values = [0, '', null, false, [], {}, { a: [1, { b: null }] }, new Date(5), new Map([['x', 5n]]), 'a\0\ud800']
    for (const value of values) {
      expect(await kv.put('k', value)).toBeUndefined()
      expect(await kv.get('k')).toEqual(value)
    }
    expect(await kv.get<string>('k')).toBe('a\0\ud800')
    expect([await kv.delete('k'), await kv.delete('k')]).toEqual([true, false])
    expect(await kv.get('k')).toBeUndefined()
  })

  it('a value outlives the engine that put it', async () => {
    const home = place()
    const writer = new Client({ store: home.connect(), logger })
    await writer.kv.put('k', { n: 1 })
    await writer.close()
    const reader = new Client({ store: home.connect(), logger })
    expect(await reader.kv.get('k')).toEqual({ n: 1 })
    await reader.close()
  })

  it('compareAndPut goes by equal values', async () => {
    const { kv } = ended(new Engine({ store: place().connect(), definitions: [none], logger }))
    expect(await kv.compareAndPut('k', 'something', 1)).toBe(false)
    expect(await kv.get('k')).toBeUndefined()
    expect(await kv.compareAndPut('k', undefined, { a: 1, b: [2] })).toBe(true)
    expect(await kv.compareAndPut('k', undefined, 'other')).toBe(false)
    expect(await kv.compareAndPut('k', { a: 1, b: ['2'] }, 'other')).toBe(false)
    expect(await kv.compareAndPut('k', { b: [2], a: 1 }, new Date(7))).toBe(true)
    expect(await kv.compareAndPut('k', 7, 'other')).toBe(false)
    expect(await kv.compareAndPut('k', new Date(7), null)).toBe(true)
    expect(await kv.compareAndPut('k', undefined, 'other')).toBe(false)
    expect(await kv.get('k')).toBeNull()
  })

  it('compareAndDelete too', async () => {
    const { kv } = ended(new Engine({ store: place().connect(), definitions: [none], logger }))
    await kv.put('k', { a: 1, b: 2 })
    expect(await kv.compareAndDelete('k', { a: 1 })).toBe(false)
    expect(await kv.compareAndDelete('k', undefined)).toBe(false)
    expect(await kv.compareAndDelete('other', { a: 1, b: 2 })).toBe(false)
    expect(await kv.compareAndDelete('k', { b: 2, a: 1 })).toBe(true)
    expect(await kv.get('k')).toBeUndefined()
  })

  it('a counter that several processes raise at once loses nothing', async () => {
    const home = place()
    const clients = Array.from({ length: 3 }, () => new Client({ store: home.connect(), logger }))
    const raise = async ({ kv }: Client): Promise<void> => {
      for (;;) {
        const count = await kv.get<number>('count')
        if (await kv.compareAndPut('count', count, (count ?? 0) + 1)) return
      }
    }
    await Promise.all(clients.flatMap((client) => Array.from({ length: 10 }, () => raise(client))))
    expect(await clients[0]?.kv.get('count')).toBe(30)
    for (const client of clients) await client.close()
  })

  it('a change whose answer was lost is made once, and answered as it was', async () => {
    const store = place().connect()
    const { kv } = ended(new Engine({ store, definitions: [none], logger }))
    await kv.put('k', 1)
    let lost = 0
    store.fate = (method) => {
      if (method !== 'commit' || lost % 2 === 1) return 'answered'
      lost += 1
      return 'lost'
    }
    expect(await kv.compareAndPut('k', 1, 2)).toBe(true)
    lost += 1
    expect(await kv.compareAndDelete('k', 2)).toBe(true)
    lost += 1
    expect(await kv.delete('k')).toBe(false)
    expect(lost).toBe(5)
  })

  it('scans keys by prefix, in the order of code points, in pages', async () => {
    const { kv } = ended(new Engine({ store: place().connect(), definitions: [none], logger }))
    const keys = ['a', 'a/1', 'a/10', 'a/2', 'a/é', 'a/\uffff', 'a/🙂', 'a_', 'b', 'B', 'a%', '日']
    for (const key of keys) await kv.put(key, `of ${key}`)
    const all = ['B', 'a', 'a%', 'a/1', 'a/10', 'a/2', 'a/é', 'a/\uffff', 'a/🙂', 'a_', 'b', '日']
    const found = async (prefix?: string): Promise<string[]> => (await kv.scan(prefix)).entries.map(({ key }) => key)
    expect(await found()).toEqual(all)
    expect(await found('')).toEqual(all)
    expect(await found('a/')).toEqual(['a/1', 'a/10', 'a/2', 'a/é', 'a/\uffff', 'a/🙂'])
    expect(await found('a%')).toEqual(['a%'])
    expect(await found('a_')).toEqual(['a_'])
    expect(await found('nobody')).toEqual([])
    expect(await kv.scan('b')).toEqual({ entries: [{ key: 'b', value: 'of b' }], cursor: undefined })
    const pages: string[][] = []
    let cursor: string | undefined
    do {
      const page = await kv.scan('a', { limit: 3, ...(cursor === undefined ? {} : { cursor }) })
      pages.push(page.entries.map(({ key }) => key))
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 3])
    expect(pages.flat()).toEqual(all.filter((key) => key.startsWith('a')))
    expect((await kv.scan('a/', { limit: 6 })).cursor).toBeUndefined()
  })

  it('a scan with nothing to give, and a cursor of another', async () => {
    const { kv } = ended(new Engine({ store: place().connect(), definitions: [none], logger }))
    await kv.put('a', 1)
    const empty = { entries: [], cursor: undefined }
    expect(await kv.scan('a', { limit: 0 })).toEqual(empty)
    for (const cursor of ['b', '', '\0', '\ud800', 'x'.repeat(300)])
      expect(await kv.scan('a', { cursor })).toEqual(empty)
    for (const options of [{ limit: -1 }, { limit: 1.5 }, { cursor: 5 }, { prefix: 'a' }, 5, null]) {
      expect(await refusal(kv.scan('a', untyped(options)))).toMatchObject({ code: 'CONFIGURATION' })
    }
  })

  it('keys and values that are none are refused, and nothing is stored', async () => {
    const { kv } = ended(new Engine({ store: place().connect(), definitions: [none], logger }))
    for (const key of ['', 'a\n', '\ud800', 'x'.repeat(256), 'perdure:x', 5, null, undefined]) {
      for (const call of [
        () => kv.get(untyped(key)),
        () => kv.put(untyped(key), 1),
        () => kv.delete(untyped(key)),
        () => kv.compareAndPut(untyped(key), undefined, 1),
        () => kv.compareAndDelete(untyped(key), 1),
      ]) {
        expect(await refusal(call())).toBeInstanceOf(InvalidIdError)
      }
    }
    for (const prefix of ['perdure:', 'a\0', 5, null]) {
      expect(await refusal(kv.scan(untyped(prefix)))).toBeInstanceOf(InvalidIdError)
    }
    for (const value of [undefined, () => {}, Symbol('s'), 'x'.repeat(1024 * 1024 - 1), 'ü'.repeat(524_288)]) {
      expect(await refusal(kv.put('k', value))).toBeInstanceOf(SerializationError)
      expect(await refusal(kv.compareAndPut('k', undefined, value))).toBeInstanceOf(SerializationError)
    }
    expect(await kv.scan()).toEqual({ entries: [], cursor: undefined })
    await kv.put('x'.repeat(255), 'x'.repeat(1024 * 1024 - 2))
    expect(await kv.get<string>('x'.repeat(255))).toHaveLength(1024 * 1024 - 2)
  })
})
