/** Starts that take the short way leave what the long way leaves, and go the long way where they have to. */
import { describe, expect, it } from 'vitest'
import type { Command, NewRun } from '../../../src/store/contract.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { PlainStarts } from '../../../src/store/postgres/plain-starts.ts'
import { changeQueue } from '../../../src/store/postgres/queues.ts'
import { newRun } from './claims.ts'
import { startSchema } from './start-schema.ts'

const queued = (id: string, run: Partial<NewRun> = {}): NewRun => newRun(id, { queue: 'media', ...run })
const enqueue = (...runs: readonly NewRun[]): Command => ({ type: 'enqueue', commandId: `of ${runs[0]?.id}`, runs })
const accepted = (...ids: readonly string[]) => ({
  type: 'accepted',
  runs: ids.map((id) => ({ id, created: true, status: 'ENQUEUED' })),
})

/** What is there of a run, but for its name, its place and its instant. */
const ROWS = `
select to_jsonb(r) - 'seq' - 'id' - 'created_at' - 'start_id' as row, i.input, now() - to_timestamp(created_at / 1000.0) < '1 min' as now
from perdure.runs r join perdure.inputs i on i.run = r.seq order by r.seq`

/** As the store does it. */
async function submit(plain: PlainStarts, database: Database, ...commands: readonly Command[]): Promise<unknown> {
  return (await plain.commit(commands)) ?? (await commit(database, commands))
}

describe('a batch of plain starts', () => {
  it('leaves the rows that the other way leaves, in the order given', async () => {
    const { database, register, run } = await startSchema()
    await register({ name: 'media' })
    const knobs = { priority: 7, kind: null, partitionKey: 'eu', timeoutMs: 5_000, definition: 'it\'s {"a"}, \\N' }
    const plain = new PlainStarts(database)
    await commit(database, [enqueue(queued('b', knobs))])
    expect(await plain.commit([enqueue(queued('z', knobs), queued('a')), enqueue(newRun('c'))])).toMatchObject([
      accepted('z', 'a'),
      accepted('c'),
    ])
    const [long, short, ...rest] = await run(ROWS)
    expect(short).toEqual(long)
    expect(rest.map(({ now }) => now)).toEqual([true, true])
    expect(await run('select id, start_id from perdure.runs order by seq offset 1')).toEqual([
      { id: 'z', start_id: 'of z' },
      { id: 'a', start_id: 'of z' },
      { id: 'c', start_id: 'of c' },
    ])
  })

  it('that names a run that is there is left to the other way, as a whole', async () => {
    const { database, register, run } = await startSchema()
    await register({ name: 'media' })
    const plain = new PlainStarts(database)
    await submit(plain, database, enqueue(queued('a')))
    expect(await plain.commit([enqueue(queued('new')), enqueue(queued('a'))])).toBeUndefined()
    expect(await run('select id from perdure.runs')).toEqual([{ id: 'a' }])
  })

  it('has the knobs of a queue as they are, not as they were', async () => {
    const { database, register, run } = await startSchema()
    await register({ name: 'media' })
    const plain = new PlainStarts(database)
    await submit(plain, database, enqueue(queued('a', { priority: 3, partitionKey: 'eu' })))
    await submit(plain, database, enqueue(queued('b', { priority: 3, partitionKey: 'eu' })))
    await changeQueue(database, 'media', { priorityEnabled: true })
    await submit(plain, database, enqueue(queued('c', { priority: 3, partitionKey: 'eu' })))
    expect(await plain.commit([enqueue(queued('d', { priority: 3, partitionKey: 'eu' }))])).toMatchObject([
      accepted('d'),
    ])
    await changeQueue(database, 'media', { partitioned: true })
    await submit(plain, database, enqueue(queued('e', { priority: 3, partitionKey: 'eu' })))
    expect(await run('select distinct rank, lane from perdure.runs')).toEqual([{ rank: '3', lane: 'eu' }])
    expect(await run('select lane from perdure.lanes')).toEqual([{ lane: 'eu' }])
  })

  it('waits for a change of its queue, and finds it', async () => {
    const { database, register, session, run } = await startSchema()
    await register({ name: 'media' })
    const plain = new PlainStarts(database)
    await submit(plain, database, enqueue(queued('a')))
    const other = await session()
    await other.run('begin')
    await other.run(`select * from perdure.queues for update`)
    await other.run(`update perdure.queues set priority_enabled = true`)
    const waiting = submit(plain, database, enqueue(queued('b', { priority: 9 })))
    await new Promise((resolve) => setTimeout(resolve, 20))
    await other.run('commit')
    await waiting
    expect(await run(`select rank from perdure.runs where id = 'b'`)).toEqual([{ rank: '9' }])
  })

  it('and another of the same ids at once: each run is created once', async () => {
    const { database, register, run } = await startSchema()
    await register({ name: 'media' })
    const ways = [new PlainStarts(database), new PlainStarts(database), new PlainStarts(database)]
    for (const plain of ways) await submit(plain, database, enqueue(queued(`warm ${ways.indexOf(plain)}`)))
    const ids = Array.from({ length: 20 }, (_, n) => `run ${n}`)
    const answers = await Promise.all(
      ways.map((plain, way) =>
        submit(
          plain,
          database,
          ...(way === 1 ? ids.toReversed() : ids).map(
            (id): Command => ({
              ...{ type: 'enqueue', commandId: `${way} ${id}` },
              runs: [queued(id)],
            }),
          ),
        ),
      ),
    )
    const created = answers.flatMap((outcomes) => JSON.stringify(outcomes).match(/"created":true/g) ?? [])
    expect(created).toHaveLength(ids.length)
    expect(await run(`select count(*)::int from perdure.runs where id like 'run %'`)).toEqual([{ count: ids.length }])
  })
})
