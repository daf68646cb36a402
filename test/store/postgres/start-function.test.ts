/** perdure.start from SQL: its options, its answers, and what is around it that it must not depend on. */
import { beforeAll, describe, expect, test } from 'vitest'
import { DEFAULT_MAX_RECOVERIES } from '../../../src/api/workflow.ts'
import { createCodec } from '../../../src/core/codec.ts'
import { sha256Hex } from '../../../src/core/ids.ts'
import { type StartSchema, startSchema } from './start-schema.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const MINUTE = 60_000

async function start(
  { run }: StartSchema,
  options: unknown,
  input: string | null = '1',
  name = 'greet',
): Promise<{ readonly id: string; readonly newly_submitted: boolean; readonly conflict: string | null }> {
  const given = options === undefined ? null : JSON.stringify(options)
  const [answer, ...more] = await run('select * from perdure.start($1, $2, $3)', name, input, given)
  expect(more).toEqual([])
  return { id: String(answer?.['id']), newly_submitted: answer?.['newly_submitted'], conflict: answer?.['conflict'] }
}

async function stored({ run }: StartSchema, id: string): Promise<Record<string, unknown>> {
  const [row] = await run(
    'select r.*, i.input from perdure.runs r join perdure.inputs i on i.run = r.seq where r.id = $1',
    id,
  )
  if (row === undefined) throw new Error(`no run ${id}`)
  return row
}

/** For tests that don't mind each other. */
function sharedSchema(): () => StartSchema {
  let schema: StartSchema | undefined
  beforeAll(async () => {
    let remove = async (): Promise<void> => {}
    schema = await startSchema({ atEnd: (end) => (remove = end) })
    return () => remove()
  })
  return () => {
    if (schema === undefined) throw new Error('it is made before the tests')
    return schema
  }
}

describe('what it stores', () => {
  const shared = sharedSchema()

  test('a name alone: on the internal queue, without an input, as a start by name does', async () => {
    const schema = await startSchema()
    const [answer] = await schema.run(`select * from perdure.start('greet')`)
    expect(answer).toEqual({ id: expect.stringMatching(UUID_V7), newly_submitted: true, conflict: null })
    const row = await stored(schema, String(answer?.['id']))
    expect(row).toMatchObject({
      ...{ definition: 'greet', kind: null, queue: '', status: 'ENQUEUED', priority: '0', lane: '', rank: '0' },
      ...{ max_recoveries: String(DEFAULT_MAX_RECOVERIES), timeout_ms: null, input_hash: null, due_at: null },
    })
    expect(createCodec().decode(String(row['input']))).toBeUndefined()
    expect(row['input']).toBe(createCodec().encode(undefined))
    expect(Math.abs(Number(row['created_at']) - Date.now())).toBeLessThan(MINUTE)
  })

  test.each([
    [{ id: 'a b/ü' }, { id: 'a b/ü' }],
    [{ queue: 'mail' }, { queue: 'mail', status: 'ENQUEUED' }],
    [
      { queue: 'mail', priority: -(2 ** 31) },
      { priority: '-2147483648', rank: '0' },
    ],
    [{ priority: 7 }, { priority: '7' }],
    [{ queue: 'mail', dedupId: 'perdure:x' }, { dedup_id: 'perdure:x' }],
    [{ queue: 'mail', dedupId: 'x', dedupPolicy: 'returnExisting' }, { dedup_id: 'x' }],
    [
      { queue: 'mail', partitionKey: 'k' },
      { partition_key: 'k', lane: '' },
    ],
    [
      { queue: 'mail', delay: 0 },
      { status: 'ENQUEUED', due_at: null },
    ],
    [
      { queue: 'mail', runAt: '2020-01-01T00:00:00Z' },
      { status: 'ENQUEUED', due_at: null },
    ],
    [
      { queue: 'mail', runAt: '2120-01-01T00:00:00.1234Z' },
      { status: 'DELAYED', due_at: '4733510400124' },
    ],
    [
      { queue: 'mail', runAt: '2120-01-01 02:00:00+02' },
      { status: 'DELAYED', due_at: '4733510400000' },
    ],
    [{ timeout: 1.5 }, { timeout_ms: '2' }],
    [{ timeout: '5m' }, { timeout_ms: '300000' }],
    [{ timeout: '1 hour 30 minutes' }, { timeout_ms: '5400000' }],
    [{ timeout: 'PT1.5S' }, { timeout_ms: '1500' }],
    [{ timeout: 1e300 }, { timeout_ms: '8000000000000000' }],
    [{ onConflict: 'raise' }, {}],
    [{ id: null, queue: null, delay: null }, { queue: '' }],
  ])('%j', async (options, expected) => {
    const { id } = await start(shared(), options)
    expect(await stored(shared(), id)).toMatchObject(expected)
  })

  test('a delay counts from now', async () => {
    const schema = await startSchema()
    for (const delay of [MINUTE, '1m', '1 minute', '00:01:00']) {
      const { id } = await start(schema, { queue: 'mail', delay })
      const row = await stored(schema, id)
      expect(row['status']).toBe('DELAYED')
      expect(Number(row['due_at']) - Number(row['created_at'])).toBe(MINUTE)
    }
  })

  test('an idempotency key makes the id that the library makes of it', async () => {
    const schema = await startSchema()
    for (const key of ['plain', 'quote " back\\slash / ü 🎉', 'line\nbreak\ttab \u0001\u001f\u007f\u0080\u2028']) {
      const name = 'send "mail"'
      const { id } = await start(schema, { idempotencyKey: key }, '1', name)
      expect(id).toBe(sha256Hex(JSON.stringify(['run', name, key])))
    }
  })

  test('options by name, and a queue that heeds them', async () => {
    const schema = await startSchema()
    await schema.register({ name: 'vip', priorityEnabled: true })
    await schema.run(`select * from perdure.start(name => 'greet', options => '{"id":"a","queue":"vip","priority":3}')`)
    expect(await stored(schema, 'a')).toMatchObject({ rank: '3', lane: '' })
  })

  test('a partitioned queue: due, so that a claim lists its lane; without a key it is never run', async () => {
    const schema = await startSchema()
    await schema.register({ name: 'tenants', partitioned: true })
    await start(schema, { id: 'keyed', queue: 'tenants', partitionKey: 'k' })
    await start(schema, { id: 'later', queue: 'tenants', partitionKey: 'k', delay: MINUTE })
    await start(schema, { id: 'keyless', queue: 'tenants' })
    const keyed = await stored(schema, 'keyed')
    expect(keyed).toMatchObject({ status: 'DELAYED', lane: 'k', partition_key: 'k' })
    expect(keyed['due_at']).toBe(keyed['created_at'])
    expect(await stored(schema, 'later')).toMatchObject({ status: 'DELAYED', lane: 'k' })
    expect(await stored(schema, 'keyless')).toMatchObject({ status: 'ENQUEUED', lane: null, due_at: null })
    expect(await schema.run('select * from perdure.lanes')).toEqual([])
  })

  test('an input as it is written, an escaped NUL too', async () => {
    const schema = await startSchema()
    for (const [index, input] of [
      '{ "b" : 1, "a": "\\u0000" }',
      '[1.0, 12345678901234567890]',
      'null',
      '"é🎉"',
    ].entries()) {
      const { id } = await start(schema, { id: `run-${index}` }, input)
      expect((await stored(schema, id))['input']).toBe(input)
    }
  })
})

describe('what it answers', () => {
  test('a run that exists, if definition and input are the same', async () => {
    const schema = await startSchema()
    const same = async (input: string | null, name?: string): Promise<unknown> =>
      start(schema, { id: 'a' }, input, name)
    const known = { id: 'a', newly_submitted: false, conflict: null }
    const mismatch = { id: 'a', newly_submitted: false, conflict: 'mismatch' }
    expect(await same('{"b":[1,2],"a":1.0}')).toEqual({ id: 'a', newly_submitted: true, conflict: null })
    expect(await same(' {"a":1, "b":[1, 2.0]}')).toEqual(known)
    expect(await same('{"b":[2,1],"a":1}')).toEqual(mismatch)
    expect(await same(null)).toEqual(mismatch)
    expect(await same('{"b":[1,2],"a":1}', 'other')).toEqual(mismatch)
    await start(schema, { id: 'nul' }, '"\\u0000"')
    expect(await start(schema, { id: 'nul' }, '"\\u0000"')).toMatchObject({ conflict: null })
    expect(await start(schema, { id: 'nul' }, '"\\u0001"')).toMatchObject({ conflict: 'mismatch' })
  })

  test('the holder of a deduplication id, until that has ended', async () => {
    const schema = await startSchema()
    const options = { queue: 'mail', dedupId: 'd' }
    await start(schema, { id: 'a', ...options })
    expect(await start(schema, { id: 'b', ...options })).toEqual({
      id: 'a',
      newly_submitted: false,
      conflict: 'deduplicated',
    })
    expect(await start(schema, { id: 'b', ...options, dedupPolicy: 'returnExisting' })).toEqual({
      ...{ id: 'a', newly_submitted: false, conflict: null },
    })
    expect(await start(schema, { id: 'a', ...options })).toMatchObject({ newly_submitted: false, conflict: null })
    expect(await start(schema, { id: 'c', ...options, queue: 'other' })).toMatchObject({ newly_submitted: true })
    await schema.run(`update perdure.runs set status = 'CANCELLED', ended_at = 1 where id = 'a'`)
    expect(await start(schema, { id: 'b', ...options })).toMatchObject({ id: 'b', newly_submitted: true })
  })

  test('an error, where the caller wants one', async () => {
    const schema = await startSchema()
    await start(schema, { id: 'a', queue: 'mail', dedupId: 'd' })
    const raise = { onConflict: 'raise' }
    await expect(start(schema, { id: 'a', ...raise }, '2')).rejects.toMatchObject({
      code: '23505',
      message: expect.stringContaining('run a was not started: its id exists'),
    })
    await expect(start(schema, { id: 'b', queue: 'mail', dedupId: 'd', ...raise })).rejects.toMatchObject({
      code: '23505',
      message: expect.stringContaining(`its deduplication id 'd' is held by run a`),
    })
    expect(await start(schema, { id: 'a', ...raise })).toMatchObject({ newly_submitted: false, conflict: null })
  })
})

describe('what it refuses, by the name of the option', () => {
  const shared = sharedSchema()
  const long = 'ü'.repeat(128)
  test.each([
    [{ id: '' }, 'option id: it is empty'],
    [{ id: 'a~1' }, 'option id: ~ is reserved'],
    [{ id: 7 }, 'option id: it takes a text'],
    [{ id: `${long.slice(0, 64)}x` }, 'option id: it is longer than 128 bytes'],
    [{ id: 'a\u0085b' }, 'option id: it contains a control character'],
    [{ idempotencyKey: '' }, 'option idempotencyKey: it takes a text'],
    [{ queue: `${long}` }, 'option queue: it is longer than 255 bytes'],
    [{ queue: 'perdure:x' }, 'option queue: perdure: is reserved'],
    [{ queue: 'q', dedupId: ['x'] }, 'option dedupId: it takes a text'],
    [{ queue: 'q', partitionKey: 'a\n' }, 'option partitionKey: it contains a control character'],
    [{ queue: 'q', dedupId: 'x', dedupPolicy: 'merge' }, 'option dedupPolicy: it is reject or returnExisting'],
    [{ onConflict: true }, 'option onConflict: it is tell or raise'],
    [{ priority: 1.5 }, 'option priority: it takes a whole number'],
    [{ priority: '1' }, 'option priority: it takes a whole number'],
    [{ priority: 2 ** 31 }, 'option priority: integer out of range'],
    [{ queue: 'q', delay: -1 }, 'option delay: it is negative'],
    [{ queue: 'q', delay: 'soon' }, 'option delay: invalid input syntax for type interval: "soon"'],
    [{ queue: 'q', delay: true }, 'option delay: it takes a number of milliseconds'],
    [{ timeout: '-1 minute' }, 'option timeout: it is negative'],
    [{ queue: 'q', runAt: 'yesterdayish' }, 'option runAt: invalid input syntax for type timestamp with time zone'],
    [{ queue: 'q', runAt: 1 }, 'option runAt: it takes a point in time'],
    [{ queue: 'q', runAt: 'infinity' }, 'option runAt: '],
    [{ queue: 'q', runAt: '290000-01-01' }, 'option runAt: it is too far away'],
    [{ dedupID: 'x' }, 'option dedupID: there is no such option. Allowed: id, '],
    [{ maxAttempts: 3 }, 'option maxAttempts: there is no such option'],
    [{ id: 'a', idempotencyKey: 'b' }, 'options: id and idempotencyKey both name the run'],
    [{ queue: 'q', delay: 1, runAt: '2020-01-01' }, 'options: delay and runAt both say when'],
    [{ queue: 'q', dedupPolicy: 'reject' }, 'options: dedupPolicy says what to do about a dedupId'],
    [{ delay: 5 }, 'options: delay is for runs on a queue'],
    [{ runAt: '2020-01-01' }, 'options: runAt is for runs on a queue'],
    [{ dedupId: 'x' }, 'options: dedupId is for runs on a queue'],
    [{ partitionKey: 'x' }, 'options: partitionKey is for runs on a queue'],
    [[], 'options: they are a JSON object, not of type array'],
    ['x', 'options: they are a JSON object, not of type string'],
  ])('%j', async (options, message) => {
    await expect(start(shared(), options)).rejects.toMatchObject({
      code: '22023',
      message: expect.stringContaining(`perdure.start: ${message}`),
    })
    expect(await shared().run('select * from perdure.runs')).toEqual([])
  })

  test('a name that is none', async () => {
    const schema = await startSchema()
    for (const name of ['', 'perdure:x', 'a\n', 'x'.repeat(256)]) {
      await expect(start(schema, undefined, '1', name)).rejects.toMatchObject({
        code: '22023',
        message: expect.stringContaining('perdure.start: name: '),
      })
    }
    await expect(schema.run('select * from perdure.start(null)')).rejects.toMatchObject({ code: '22023' })
  })

  test('a text that PostgreSQL can not have', async () => {
    const schema = await startSchema()
    await expect(schema.run(`select * from perdure.start('a', '1', '{"id":"\\u0000"}')`)).rejects.toMatchObject({
      code: '22023',
      message: expect.stringContaining('perdure.start: options: '),
    })
  })
})
