/** Scans of the KV space: the keys of a prefix in order of code points, page by page. */
import assert from 'node:assert/strict'
import type { Test, World } from './world.ts'

/** In order of code points. UTF-16 units would put the astral ones before U+E000, and a collation anything anywhere. */
const ORDERED = [
  '',
  ' ',
  '"',
  '%',
  '*',
  '1',
  '10',
  '2',
  'A',
  'Z',
  '[',
  '_',
  'a',
  'a ',
  'a/',
  'a/1',
  'a/\u00e9',
  'a/\ud7ff',
  'a/\ue000',
  'a/\uffff',
  'a/\u{10000}',
  'a/\u{1f600}',
  'a/\u{1f600}x',
  'a/\u{10ffff}',
  'a/\u{10ffff}\u{10ffff}',
  'a/\u{10ffff}x',
  'a0',
  'b',
  '~',
  '\u00df',
  '\u00e9',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '\uffffa',
  '\uffff\uffff',
  '\u{10000}',
  '\u{10ffff}',
  '\u{10ffff}\u{10ffff}',
].sort((a, b) => compare([...a], [...b]))

function compare(a: readonly string[], b: readonly string[]): number {
  const at = a.findIndex((character, n) => character !== b[n])
  if (at === -1) return a.length - b.length
  return (a[at]?.codePointAt(0) ?? 0) - (b[at]?.codePointAt(0) ?? -1)
}

export function scan(test: Test): void {
  test('all keys, in order of code points', async (world) => {
    assert.deepEqual(await keys(world, ''), [])
    await fill(world)
    assert.deepEqual(await keys(world, ''), ORDERED)
    const [first] = await world.store.scan('', null, 1)
    assert.deepEqual(first, { key: '', value: '"of "' })
  })

  test('the keys that begin with a prefix, whatever it ends with', async (world) => {
    await fill(world)
    for (const prefix of [...ORDERED, 'a/\u{1f601}', 'nothing', 'A/', '\u{10fffe}']) {
      const expected = ORDERED.filter((key) => key.startsWith(prefix))
      assert.deepEqual(await keys(world, prefix), expected, JSON.stringify(prefix))
    }
  })

  test('page by page, after a key that is there or not', async (world) => {
    await fill(world)
    for (const prefix of ['', 'a/', '\uffff', '\u{10ffff}']) {
      const expected = ORDERED.filter((key) => key.startsWith(prefix))
      const found: string[] = []
      for (let after: string | null = null; ; ) {
        const page: readonly string[] = await keys(world, prefix, after, 3)
        assert.ok(page.length <= 3)
        found.push(...page)
        assert.ok(found.length <= expected.length, 'it comes to an end')
        const last = page.at(-1)
        if (last === undefined) break
        after = last
      }
      assert.deepEqual(found, expected, JSON.stringify(prefix))
    }
    assert.deepEqual(
      await keys(world, 'a', 'a!'),
      ORDERED.filter((key) => key.startsWith('a') && key > 'a!'),
    )
  })

  test('after a key beyond the prefix there is nothing, after one before it everything', async (world) => {
    await fill(world)
    const all = ORDERED.filter((key) => key.startsWith('a/'))
    assert.deepEqual(await keys(world, 'a/', 'b'), [])
    assert.deepEqual(await keys(world, 'a/', '\u{10ffff}'), [])
    assert.deepEqual(await keys(world, 'a/', ''), all)
    assert.deepEqual(await keys(world, 'a/', 'A'), all)
    assert.deepEqual(await keys(world, 'a/', 'a/\uffff'), all.slice(all.indexOf('a/\uffff') + 1))
    assert.deepEqual(await keys(world, '', '\u{10ffff}\u{10ffff}'), [])
  })

  test('at most as many as asked for, with the values of now', async (world) => {
    await put(world, 'p/1', 'p/2', 'p/3')
    await world.kv({ type: 'delete', key: 'p/2' })
    await world.kv({ type: 'put', key: 'p/3', value: '"changed"', hash: '#' })
    assert.deepEqual(await world.store.scan('p/', null, 10), [
      { key: 'p/1', value: '"of p/1"' },
      { key: 'p/3', value: '"changed"' },
    ])
    assert.deepEqual(await keys(world, 'p/', null, 1), ['p/1'])
    assert.deepEqual(await keys(world, 'p/', null, 0), [])
  })

  test('a page is the same after the store was opened anew', async (world) => {
    await fill(world)
    await world.store.close()
    await world.store.open()
    assert.deepEqual(await keys(world, ''), ORDERED)
  })
}

async function fill(world: World): Promise<void> {
  await put(world, ...ORDERED.toReversed())
}

async function put(world: World, ...keys: readonly string[]): Promise<void> {
  await world.commitAll(
    keys.map((key) => {
      const change = { type: 'put', key, value: `"of ${key}"`, hash: `#${key}` } as const
      return { type: 'kv', commandId: world.commandId(), change }
    }),
  )
}

async function keys(
  world: World,
  prefix: string,
  after: string | null = null,
  limit = 1_000,
): Promise<readonly string[]> {
  return (await world.store.scan(prefix, after, limit)).map(({ key }) => key)
}
