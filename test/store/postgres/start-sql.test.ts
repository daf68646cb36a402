/** Starts in a caller's transaction, as the store offers them: the same as its own, but for when they are committed. */
import fc from 'fast-check'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newRun } from '../../../src/store/conformance/makers.ts'
import type { EnqueueOutcome, NewRun } from '../../../src/store/contract.ts'
import { promoteDue } from '../../../src/store/postgres/claim/promote.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import { allQueues, changeQueue } from '../../../src/store/postgres/queues.ts'
import { callerStarts, quotedForDrivers } from '../../../src/store/postgres/start-sql.ts'
import { MockClock } from '../../../src/testing/index.ts'
import { serverUrl } from './server.ts'
import { type StartSchema, startSchema } from './start-schema.ts'

const NOW = 1_800_000_000_000
const DEFINITIONS = ['charge', 'refund']
const QUEUES = ['plain', 'urgent', 'tenants', 'unknown']

// ── The same as the library's own ───────────────────────────────────────────────────────────────────────────────

const runs: fc.Arbitrary<NewRun> = fc
  .record({
    id: fc.constantFrom(...'abcdefghijklmnop'),
    definition: fc.constantFrom(...DEFINITIONS),
    kind: fc.constantFrom('workflow', 'job', null),
    queue: fc.option(fc.constantFrom(...QUEUES), { freq: 4 }),
    priority: fc.constantFrom(0, 0, 3, -7),
    partitionKey: fc.option(fc.constantFrom('k', 'l', 'ü')),
    dedup: fc.option(
      fc.record({
        id: fc.constantFrom('d', 'e'),
        policy: fc.constantFrom('reject' as const, 'returnExisting' as const),
      }),
    ),
    due: fc.option(
      fc.oneof(
        fc.record({ type: fc.constant('after' as const), ms: fc.constantFrom(0, 5_000) }),
        fc.record({ type: fc.constant('at' as const), instant: fc.constantFrom(NOW - 1, NOW, NOW + 1) }),
      ),
    ),
    input: fc.constantFrom('{"a":1}', '"\\u0000 \\" \\\\ 🎉"'),
    maxRecoveries: fc.constantFrom(50, 0, Number.MAX_SAFE_INTEGER),
    timeoutMs: fc.constantFrom(null, null, 8e15),
    kv: fc.uniqueArray(fc.constantFrom('x', 'y')),
  })
  .map(({ kv, ...run }) => ({
    ...newRun(run.id, run),
    inputHash: `hash of ${run.input}`,
    // Only a queue has deduplication ids.
    dedup: run.queue === null ? null : run.dedup,
    kv: kv.map((key) => ({ type: 'put' as const, key, value: `"${run.id}"`, hash: `hash of ${run.id}` })),
  }))

type Deed =
  | { readonly type: 'start'; readonly runs: readonly NewRun[] }
  | { readonly type: 'end'; readonly id: string }
  | { readonly type: 'configure'; readonly partitioned: boolean; readonly priorityEnabled: boolean }

const deeds: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ type: fc.constant('start' as const), runs: fc.array(runs, { minLength: 1, maxLength: 3 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('end' as const), id: fc.constantFrom(...'abcdefghijklmnop') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('configure' as const),
      partitioned: fc.boolean(),
      priorityEnabled: fc.boolean(),
    }),
  },
)

type Start = (runs: readonly NewRun[], startId: string) => Promise<EnqueueOutcome>

async function carryOut(
  schema: StartSchema,
  start: Start,
  script: readonly Deed[],
): Promise<readonly EnqueueOutcome[]> {
  const outcomes: EnqueueOutcome[] = []
  for (const [index, deed] of script.entries()) {
    switch (deed.type) {
      case 'start':
        outcomes.push(await start(deed.runs, `command ${index}`))
        await listLanes(schema)
        break
      case 'end':
        await schema.run(
          `update perdure.runs set status = 'SUCCESS', due_at = null, ended_at = 1 where id = $1`,
          deed.id,
        )
        break
      case 'configure':
        await changeQueue(schema.database, 'tenants', deed)
        break
    }
  }
  return outcomes
}

/** As the next claim does first, which lists the lanes of what came from a caller's transaction. */
async function listLanes({ database }: StartSchema): Promise<void> {
  const queues = new Map((await allQueues(database)).map((queue) => [queue.name, queue]))
  const request = {
    ...{ owner: 'o', tokens: [], version: null },
    definitions: DEFINITIONS.map((name) => ({ name, kind: 'workflow' as const, maxRecoveries: 0, timeoutMs: null })),
    sources: [null, ...QUEUES].map((queue) => ({ queue, leaseMs: 1, room: 0, lanes: null })),
  }
  await database.write((transaction) => promoteDue(transaction, request, queues, NOW))
}

async function rows({ run }: StartSchema): Promise<unknown> {
  return {
    runs: (
      await run('select r.*, i.input from perdure.runs r left join perdure.inputs i on i.run = r.seq order by r.seq')
    ).map(({ seq: _, start_id: startId, ...row }) => ({ ...row, startId: String(startId).replace(/^tx:/, '') })),
    lanes: await run(
      `select queue, lane, definition, version, ready_at, rank() over (partition by queue order by place) as turn
      from perdure.lanes order by queue, lane, definition`,
    ),
    kv: await run('select * from perdure.kv order by key'),
    inputs: await run('select count(*) from perdure.inputs'),
  }
}

async function schemaAtNow(): Promise<StartSchema> {
  const schema = await startSchema({ clock: new MockClock(NOW) })
  await schema.register({ name: 'plain' })
  await schema.register({ name: 'urgent', priorityEnabled: true })
  await schema.register({ name: 'tenants', partitioned: true })
  return schema
}

async function client(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: await serverUrl() })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}

function startsIn({ schema }: StartSchema): ReturnType<typeof callerStarts> {
  return callerStarts({ schema: quotedForDrivers(schema), channel: null, now: () => NOW })
}

/**
 * But for two things: a run that is due on a partitioned queue is DELAYED until the next claim, and of a run that was
 * there before, nobody asks what its queue ignores.
 */
function comparable(outcomes: readonly EnqueueOutcome[]): readonly unknown[] {
  return outcomes.map((outcome) =>
    outcome.type !== 'accepted'
      ? outcome
      : outcome.runs.map(({ id, created, status, caveat }) => ({
          ...{ id, created, status: status === 'DELAYED' ? 'ENQUEUED' : status },
          caveat: created ? caveat : null,
        })),
  )
}

test('any starts give the same answers and the same rows as commands of the commit lane', {
  timeout: 120_000,
}, async () => {
  const tx = await client()
  await fc.assert(
    fc.asyncProperty(fc.array(deeds, { minLength: 5, maxLength: 40 }), async (script) => {
      const [own, callers] = [await schemaAtNow(), await schemaAtNow()]
      const byCommand: Start = async (given, commandId) => {
        const [outcome] = await commit(own.database, [{ type: 'enqueue', commandId, runs: given }])
        return outcome as EnqueueOutcome
      }
      const starts = startsIn(callers)
      const byCaller: Start = async (given, startId) => {
        await tx.query('rollback; begin')
        const outcome = await starts.start(tx, given, startId)
        await tx.query('commit')
        return outcome
      }
      const expected = await carryOut(own, byCommand, script)
      const outcomes = await carryOut(callers, byCaller, script)
      expect(comparable(outcomes)).toEqual(comparable(expected))
      expect(await rows(callers)).toEqual(await rows(own))
    }),
    { numRuns: 6, endOnFailure: true },
  )
})

// ── What it is given, and what it gives ─────────────────────────────────────────────────────────────────────────

describe('the client', () => {
  const run = newRun('a')

  test.each([
    ['nothing', undefined, 'no query(text, values)'],
    ['a text', 'begin', 'no query(text, values)'],
    ['an object without query', { execute: () => [] }, 'no query(text, values)'],
    ['one that answers with nothing', { query: () => undefined }, 'does not answer with rows'],
    ['one that answers with other rows', { query: async () => ({ rows: [{ n: 1 }] }) }, 'does not answer with rows'],
    ['one that answers with no row', { query: async () => ({ rows: [] }) }, 'does not answer with rows'],
  ])('%s is refused', async (_, tx, problem) => {
    const starts = callerStarts({ schema: '"perdure"', channel: null, now: () => null })
    await expect(starts.start(tx, [run], 'command')).rejects.toMatchObject({
      code: 'CONFIGURATION',
      option: 'start.tx',
      problem: expect.stringContaining(problem),
    })
  })

  test('a pool is refused, as its queries are in no transaction', async () => {
    const pool = new pg.Pool({ connectionString: await serverUrl() })
    const starts = callerStarts({ schema: '"perdure"', channel: null, now: () => null })
    await expect(starts.start(pool, [run], 'command')).rejects.toMatchObject({
      code: 'CONFIGURATION',
      problem: expect.stringContaining('it is a pool'),
    })
    await pool.end()
  })

  test('of another database is refused', async () => {
    const starts = callerStarts({ schema: '"not here"', channel: null, now: () => null })
    await expect(starts.start(await client(), [run], 'command')).rejects.toMatchObject({
      code: 'CONFIGURATION',
      problem: expect.stringContaining('without the schema of the store'),
      cause: { code: '3F000' },
    })
  })

  test('may answer with the rows themselves; what it throws is its own', async () => {
    const schema = await schemaAtNow()
    const tx = await client()
    const rowsOnly = { query: async (sql: string, values: unknown[]) => (await tx.query(sql, values)).rows as unknown }
    expect(await startsIn(schema).start(rowsOnly, [run], 'command')).toMatchObject({ type: 'accepted' })
    await tx.query('begin')
    await tx.query('select 1 / 0').catch(() => {})
    await expect(startsIn(schema).start(tx, [run], 'command')).rejects.toMatchObject({ code: '25P02' })
  })
})

test('many are started together, or none of them, and the transaction goes on', async () => {
  const schema = await schemaAtNow()
  const tx = await client()
  const starts = startsIn(schema)
  await tx.query('begin')
  await starts.start(tx, [newRun('a')], 'command 1')
  const refused = await starts.start(tx, [newRun('b'), newRun('a', { inputHash: 'other' }), newRun('c')], 'command 2')
  expect(refused).toEqual({ type: 'mismatch', id: 'a', definition: 'charge' })
  const accepted = await starts.start(tx, [newRun('d'), newRun('a'), newRun('d')], 'command 3')
  expect(accepted).toMatchObject({ runs: [{ created: true }, { created: false }, { created: false }] })
  await tx.query('commit')
  expect(await schema.run('select id from perdure.runs order by seq')).toEqual([{ id: 'a' }, { id: 'd' }])
  expect(await schema.run('select count(*)::int from perdure.inputs')).toEqual([{ count: 2 }])
})

test('a thousand at once', async () => {
  const schema = await schemaAtNow()
  const many = Array.from({ length: 1_000 }, (_, n) =>
    newRun(`run ${n}`, { queue: 'tenants', partitionKey: `key ${n % 7}` }),
  )
  const outcome = await startsIn(schema).start(await client(), many, 'command')
  expect(outcome).toMatchObject({ type: 'accepted', runs: { length: 1_000 } })
})

describe('a statement', () => {
  const call = callerStarts({ schema: quotedForDrivers('My "own"'), channel: 'c', now: () => 5 }).sql(
    newRun('a', { queue: 'q', due: { type: 'after', ms: 7 }, input: '"$1 ? :a \' \\\\"' }),
    'command',
    'raise',
  )

  test('has a placeholder for each value, in order', () => {
    expect(call.text).toBe('select id, newly_submitted, conflict from "My ""own""".start_run($1)')
    expect(call.values).toHaveLength(1)
    expect(call.strings).toHaveLength(call.values.length + 1)
    expect(call.strings.raw).toEqual([...call.strings])
    expect(call.strings.reduce((before, after, n) => `${before}$${n}${after}`)).toBe(call.text)
  })

  test('carries the run as JSON', () => {
    expect(JSON.parse(call.values[0] ?? '')).toMatchObject({
      ...{ id: 'a', queue: 'q', afterMs: 7, now: 5, channel: 'c', onConflict: 'raise', input: '"$1 ? :a \' \\\\"' },
    })
  })

  test('of a schema with a question mark has none in its text', async () => {
    const schema = await startSchema({ schema: 'a?b"c\\d' })
    const { text, values } = startsIn(schema).sql(newRun('a'), 'command', 'tell')
    expect(text).not.toContain('?')
    expect((await (await client()).query(text, values)).rows).toEqual([
      { id: 'a', newly_submitted: true, conflict: null },
    ])
  })
})
