/** The KV space: changes, conditional and not, that recognise themselves when they are resent. */
import assert from 'node:assert/strict'
import type { KvPut } from '../contract.ts'
import { accepted, newRun, numbered } from './makers.ts'
import type { Test } from './world.ts'

const DAY_MS = 24 * 3_600_000

export function kv(test: Test): void {
  changes(test)
  conditions(test)
  resends(test)
  withStarts(test)
}

function put(key: string, value: string, hash = `#${value}`): KvPut {
  return { type: 'put', key, value, hash }
}

function putIf(key: string, value: string, expected: string | null) {
  return { ...put(key, value), type: 'putIf', expected } as const
}

function changes(test: Test): void {
  test('what was put is there until it is put again or deleted', async (world) => {
    assert.equal(await world.value('k'), undefined)
    assert.equal(await world.kv(put('k', '1')), true)
    assert.equal(await world.value('k'), '1')
    assert.equal(await world.kv(put('k', '2')), true)
    assert.equal(await world.value('k'), '2')
    assert.equal(await world.kv({ type: 'delete', key: 'k' }), true)
    assert.equal(await world.value('k'), undefined)
    assert.equal(await world.kv({ type: 'delete', key: 'k' }), false, 'there was nothing')
    assert.equal(await world.kv(put('k', '3')), true)
    assert.equal(await world.value('k'), '3')
  })

  test('values come in the order asked, undefined where there is none', async (world) => {
    for (const key of ['a', 'b', 'c']) await world.kv(put(key, key))
    assert.deepEqual(await world.store.values(['c', 'x', 'a', 'c']), ['c', undefined, 'a', 'c'])
    assert.deepEqual(await world.store.values([]), [])
    const many = numbered('key', 1_000)
    assert.equal((await world.store.values([...many, 'b'])).at(-1), 'b')
  })

  test('keys are told apart exactly', async (world) => {
    const keys = [
      'k',
      'K',
      'k ',
      ' k',
      '',
      'k%',
      'k_',
      '\u00e9',
      'e\u0301',
      '__proto__',
      'constructor',
      '1',
      '01',
      '1.0',
    ]
    for (const key of keys) await world.kv(put(key, `"${key}"`))
    assert.deepEqual(
      await world.store.values(keys),
      keys.map((key) => `"${key}"`),
    )
    await world.kv({ type: 'delete', key: 'k' })
    assert.deepEqual(await world.store.values(keys), [undefined, ...keys.slice(1).map((key) => `"${key}"`)])
  })

  test('odd values come back as they were', async (world) => {
    const values = ['', ' ', 'null', '007', '1e3', '"\\u0000"', "it's", '😀', '\ufeff\uffff', 'x'.repeat(1_000_000)]
    for (const [n, value] of values.entries()) await world.kv(put(`k ${n}`, value, '#'))
    const found = await world.store.values(values.map((_, n) => `k ${n}`))
    for (const [n, value] of values.entries()) assert.ok(found[n] === value, `value ${n}`)
  })

  test('a batch of changes has an outcome for each', async (world) => {
    const outcomes = await world.commitAll([
      { type: 'kv', commandId: 'c1', change: put('a', '1') },
      { type: 'kv', commandId: 'c2', change: { type: 'delete', key: 'b' } },
      { type: 'kv', commandId: 'c3', change: putIf('c', '1', '#none') },
      { type: 'kv', commandId: 'c4', change: putIf('d', '1', null) },
    ])
    assert.deepEqual(
      outcomes,
      [true, false, false, true].map((applied) => ({ type: 'kv', applied })),
    )
    assert.deepEqual(await world.store.values(['a', 'b', 'c', 'd']), ['1', undefined, undefined, '1'])
  })
}

function conditions(test: Test): void {
  test('putIf: only over the value of that hash, or where there is nothing', async (world) => {
    assert.equal(await world.kv(putIf('k', '1', '#0')), false)
    assert.equal(await world.value('k'), undefined)
    assert.equal(await world.kv(putIf('k', '1', null)), true)
    assert.equal(await world.kv(putIf('k', '2', null)), false)
    assert.equal(await world.kv(putIf('k', '2', '#2')), false)
    assert.equal(await world.value('k'), '1')
    assert.equal(await world.kv(putIf('k', '2', '#1')), true)
    assert.equal(await world.value('k'), '2')
    await world.kv({ type: 'delete', key: 'k' })
    assert.equal(await world.kv(putIf('k', '3', '#2')), false)
    assert.equal(await world.kv(putIf('k', '3', null)), true)
  })

  test('deleteIf: only the value of that hash', async (world) => {
    assert.equal(await world.kv({ type: 'deleteIf', key: 'k', expected: '#1' }), false)
    await world.kv(put('k', '1'))
    assert.equal(await world.kv({ type: 'deleteIf', key: 'k', expected: '#2' }), false)
    assert.equal(await world.value('k'), '1')
    assert.equal(await world.kv({ type: 'deleteIf', key: 'k', expected: '#1' }), true)
    assert.equal(await world.value('k'), undefined)
  })

  test('equal values are told by their hash, not their text', async (world) => {
    await world.kv(put('k', '{"x":1,"y":2}', 'same'))
    const change = { ...put('k', '{"y":2,"x":1}', 'same'), type: 'putIf', expected: 'same' } as const
    assert.equal(await world.kv(change), true)
    assert.equal(await world.value('k'), '{"y":2,"x":1}')
    assert.equal(await world.kv({ type: 'deleteIf', key: 'k', expected: 'same' }), true)
  })

  test('a put and a putIf leave the hash of what they put', async (world) => {
    await world.kv(put('k', '1', 'one'))
    await world.kv(put('k', '2', 'two'))
    assert.equal(await world.kv({ ...put('k', '3', 'three'), type: 'putIf', expected: 'one' }), false)
    assert.equal(await world.kv({ ...put('k', '3', 'three'), type: 'putIf', expected: 'two' }), true)
    assert.equal(await world.kv({ type: 'deleteIf', key: 'k', expected: 'three' }), true)
  })

  test('of twelve that compare with one value, one changes it', async (world) => {
    await world.kv(put('k', '0'))
    const applied = await Promise.all(Array.from({ length: 12 }, (_, n) => world.kv(putIf('k', `1 ${n}`, '#0'))))
    assert.equal(applied.filter(Boolean).length, 1)
    assert.equal(await world.value('k'), `1 ${applied.indexOf(true)}`)
  })
}

function resends(test: Test): void {
  test('a change that is resent answers as it did, and undoes nothing that came after it', async (world) => {
    await world.kv(put('k', '1'), 'c1')
    await world.kv(putIf('k', '2', '#1'), 'c2')
    await world.kv(putIf('k', '9', '#1'), 'c3')
    await world.kv(put('k', '3'), 'c4')
    for (const [change, commandId, applied] of [
      [put('k', '1'), 'c1', true],
      [putIf('k', '2', '#1'), 'c2', true],
      [putIf('k', '9', '#1'), 'c3', false],
      [put('k', '3'), 'c4', true],
    ] as const) {
      assert.equal(await world.kv(change, commandId), applied, commandId)
      assert.equal(await world.value('k'), '3', commandId)
    }
    await world.kv({ type: 'delete', key: 'k' }, 'c5')
    await world.kv({ type: 'delete', key: 'k' }, 'c6')
    await world.kv(put('k', '4'), 'c7')
    assert.equal(await world.kv({ type: 'delete', key: 'k' }, 'c5'), true)
    assert.equal(await world.kv({ type: 'delete', key: 'k' }, 'c6'), false)
    assert.equal(await world.value('k'), '4')
  })

  test('so it does in a batch, and after the store was opened anew', async (world) => {
    const commands = [
      { type: 'kv', commandId: 'c1', change: putIf('a', '1', null) },
      { type: 'kv', commandId: 'c2', change: putIf('b', '1', '#0') },
    ] as const
    const first = await world.commitAll(commands)
    await world.store.close()
    await world.store.open()
    await world.kv(put('b', '0'))
    assert.deepEqual(await world.commitAll(commands), first)
    assert.deepEqual(await world.store.values(['a', 'b']), ['1', '0'])
  })

  test('a command that was rejected has left no receipt', async (world) => {
    const poison = { type: 'enqueue', commandId: 'p', runs: [newRun('p', { maxRecoveries: Number.NaN })] } as const
    const change = { type: 'kv', commandId: 'c1', change: putIf('k', '1', null) } as const
    await assert.rejects(
      world.store.commit([change, poison]).then((answered) => {
        // A store that stopped early has answered the first; the rest is the one to refuse.
        assert.equal(answered.length, 1)
        return world.store.commit([poison])
      }),
    )
    assert.deepEqual(await world.commit(change), { type: 'kv', applied: true })
    assert.equal(await world.value('k'), '1')
  })

  test('a resend is recognised for a day, and for longer only until the next sweep', async (world) => {
    const sweep = () => world.sweep([])
    await world.kv(put('k', '1'), 'c1')
    await world.kv(put('k', '2'))
    world.clock.pass(DAY_MS - 1_000)
    await sweep()
    await world.kv(put('k', '1'), 'c1')
    assert.equal(await world.value('k'), '2')
    world.clock.pass(2_000)
    await sweep()
    await world.kv(put('k', '1'), 'c1')
    assert.equal(await world.value('k'), '1', 'the receipt is gone')
  })
}

function withStarts(test: Test): void {
  test('a start writes its key-values if, and only if, it creates its run', async (world) => {
    const start = (id: string, value: string) => newRun(id, { kv: [put('k', value), put(`of ${id}`, value)] })
    await world.enqueue(start('a', '1'))
    assert.deepEqual(await world.store.values(['k', 'of a']), ['1', '1'])
    assert.deepEqual(await world.enqueue(start('a', '2')), accepted({ id: 'a', created: false }))
    await world.enqueue(start('b', '2'), { ...start('a', '3'), inputHash: 'another' })
    assert.deepEqual(await world.store.values(['k', 'of a', 'of b']), ['1', '1', undefined])
    await world.enqueue(start('c', '4'), start('c', '5'))
    assert.deepEqual(await world.store.values(['k', 'of c']), ['4', '4'])
    assert.equal(await world.kv({ type: 'deleteIf', key: 'of c', expected: '#4' }), true)
  })

  test('one that a deduplication turns away writes nothing (Q31)', async (world) => {
    const start = (id: string, policy: 'reject' | 'returnExisting') =>
      newRun(id, { queue: 'media', dedup: { id: 'd', policy }, kv: [put('k', id)] })
    await world.enqueue(start('a', 'reject'))
    await world.enqueue(start('b', 'reject'))
    await world.enqueue(start('c', 'returnExisting'))
    assert.equal(await world.value('k'), 'a')
  })

  test('one that is resent writes nothing again', async (world) => {
    const start = { type: 'enqueue', commandId: 'c1', runs: [newRun('a', { kv: [put('k', '1')] })] } as const
    await world.commit(start)
    await world.kv(put('k', '2'))
    await world.commit(start)
    assert.equal(await world.value('k'), '2')
  })
}
