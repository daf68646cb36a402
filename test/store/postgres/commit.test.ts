/** The commit lane: what others hold up, what it costs, and what SQL has written before. */
import { describe, expect, it } from 'vitest'
import { createCodec } from '../../../src/core/codec.ts'
import { sha256Hex } from '../../../src/core/ids.ts'
import { applied, outcome, SUCCEED } from '../../../src/store/conformance/makers.ts'
import type { Command, NewCheckpoint } from '../../../src/store/contract.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import type { Database, WriteOptions } from '../../../src/store/postgres/database.ts'
import { registerQueues } from '../../../src/store/postgres/queues.ts'
import { LockedError, type Row, type Transaction } from '../../../src/store/postgres/session.ts'
import { claimed, enqueue, newRun, submit, tokenOf } from './claims.ts'
import { openDatabase, stranger } from './databases.ts'
import { serverUrl } from './server.ts'

function checkpoint(runId: string, ...entries: readonly NewCheckpoint[]): Command {
  return { type: 'checkpoint', runId, token: tokenOf(runId), entries }
}
function settle(runId: string, ...entries: readonly NewCheckpoint[]): Command {
  return { type: 'settle', runId, token: tokenOf(runId), entries, settlement: SUCCEED }
}
function start(id: string, commandId = `command of ${id}`, inputHash = 'hash'): Command {
  return { type: 'enqueue', commandId, runs: [newRun(id, { inputHash })] }
}

describe('a lock that somebody else keeps', () => {
  it('ends the batch that needs it, which has no effect', async () => {
    const database = await openDatabase()
    await enqueue(database, claimed('a'), claimed('b'), claimed('c'))
    const other = await stranger(await serverUrl())
    await other.query('begin')
    await other.query(database.render(`select 1 from perdure.runs where id = 'b' for update`))
    const commands = ['a', 'b', 'c'].map((id) => checkpoint(id, outcome(0)))
    await expect(commit(database, commands)).rejects.toBeInstanceOf(LockedError)
    await other.query('rollback')
    expect(await commit(database, commands)).toEqual([applied(), applied(), applied()])
  })

  it('of a start in a long transaction, until that has ended: then it is one start', async () => {
    const database = await openDatabase()
    await enqueue(database, newRun('a'))
    const other = await stranger(await serverUrl())
    await other.query('begin')
    await other.query(
      database.render(`insert into perdure.runs select (jsonb_populate_record(r, '{"id":"b","seq":-1}')).*
        from perdure.runs r where id = 'a'`),
    )
    await expect(commit(database, [start('b')])).rejects.toBeInstanceOf(LockedError)
    const waiting = commit(database, [start('c'), start('b')], { lockTimeoutMs: 20_000 })
    await other.query('commit')
    const answers = await waiting
    expect(answers).toMatchObject([{ runs: [{ created: true }] }, { runs: [{ id: 'b', created: false }] }])
  })
})

/** Counts what a batch sends, transactions begun included. */
function counting(database: Database): { readonly database: Pick<Database, 'write'>; readonly sent: string[] } {
  const sent: string[] = []
  const write = <T>(body: (transaction: Transaction) => Promise<T>, options?: WriteOptions): Promise<T> =>
    database.write((transaction) => {
      sent.push('begin')
      const query = (sql: string, values?: readonly unknown[]): Promise<readonly Row[]> => {
        sent.push(sql)
        return transaction.query(sql, values)
      }
      return body({ query, instant: (now) => transaction.instant(now), finish: () => transaction.finish() })
    }, options)
  return { database: { write }, sent }
}

describe('the statements of a batch are few, whatever its size', () => {
  const ids = Array.from({ length: 200 }, (_, n) => `run ${n}`)

  it('starts: read, write', async () => {
    const { database, sent } = counting(await openDatabase())
    await commit(
      database,
      ids.map((id) => start(id)),
    )
    expect(sent).toHaveLength(3)
  })

  it('checkpoints: lock, read, write', async () => {
    const opened = await openDatabase()
    await enqueue(opened, ...ids.map((id) => claimed(id)))
    const { database, sent } = counting(opened)
    await commit(
      database,
      ids.map((id) => checkpoint(id, outcome(0), outcome(1))),
    )
    expect(sent).toHaveLength(4)
    sent.length = 0
    await commit(
      database,
      ids.map((id) => checkpoint(id, outcome(0), outcome(1))),
    )
    expect(sent, 'sent again, the entries are compared').toHaveLength(4)
  })

  it('settlements: lock, read, and two writes at once', async () => {
    const opened = await openDatabase()
    await enqueue(opened, ...ids.map((id) => claimed(id)))
    const { database, sent } = counting(opened)
    await commit(
      database,
      ids.map((id) => settle(id, outcome(0))),
    )
    expect(sent).toHaveLength(5)
  })

  it('starts and settlements together', async () => {
    const opened = await openDatabase()
    await enqueue(opened, ...ids.map((id) => claimed(id)))
    const { database, sent } = counting(opened)
    await commit(
      database,
      ids.flatMap((id) => [settle(id), start(`another ${id}`)]),
    )
    expect(sent.length).toBeLessThanOrEqual(5)
  })
})

describe('a run whose input was hashed by nobody', () => {
  const codec = createCodec()
  const hash = sha256Hex(codec.canonical('{"b":1,"a":[2]}'))

  async function written(input: string): Promise<Database> {
    const database = await openDatabase()
    await enqueue(database, newRun('a', { input }))
    const other = await stranger(await serverUrl())
    await other.query(database.render('update perdure.runs set input_hash = null'))
    return database
  }
  async function stored(database: Database): Promise<unknown> {
    const [row] = await database.read((session) => session.query('select input_hash from perdure.runs'))
    return row?.[0]
  }

  it('is compared by its input, and has its hash from then on', async () => {
    const database = await written('{"a": [2], "b": 1}')
    expect(await submit(database, start('a', 'c1', 'another'))).toMatchObject({ type: 'mismatch', id: 'a' })
    expect(await submit(database, start('a', 'c2', hash))).toMatchObject({ runs: [{ id: 'a', created: false }] })
    expect(await stored(database)).toBe(hash)
  })

  it('in one batch with its cancellation, too', async () => {
    const database = await written('{"a": [2], "b": 1}')
    const cancel: Command = { type: 'cancel', commandId: 'cancel', runId: 'a' }
    const answers = await commit(database, [cancel, start('a', 'c2', hash)])
    expect(answers).toMatchObject([{ type: 'cancelled' }, { runs: [{ id: 'a', created: false, status: 'CANCELLED' }] }])
    expect(await stored(database)).toBe(hash)
  })

  it('equals nothing if it holds no value', async () => {
    const database = await written('no json')
    expect(await submit(database, start('a', 'c1', hash))).toMatchObject({ type: 'mismatch', id: 'a' })
  })
})

describe('a requeue and a start that want one deduplication id', () => {
  it('at once: one of them has it', async () => {
    const database = await openDatabase()
    const dedup = { id: 'd', policy: 'reject' } as const
    for (let round = 0; round < 20; round += 1) {
      const queue = `queue ${round}`
      const [old, fresh] = [`old ${round}`, `fresh ${round}`]
      await submit(database, { type: 'enqueue', commandId: old, runs: [newRun(old, { queue, dedup })] })
      await submit(database, { type: 'cancel', commandId: `cancel ${old}`, runId: old })
      const [requeued, started] = await Promise.all([
        submit(database, { type: 'requeue', commandId: `requeue ${old}`, runId: old }),
        submit(database, { type: 'enqueue', commandId: fresh, runs: [newRun(fresh, { queue, dedup })] }),
      ])
      const answers = [requeued?.type, started?.type]
      expect([
        ['requeued', 'deduplicated'],
        ['notRequeued', 'accepted'],
      ]).toContainEqual(answers)
    }
  })
})

describe('starts on a queue that is just being registered', () => {
  it('find it, or are found by it', async () => {
    const database = await openDatabase()
    for (let round = 0; round < 10; round += 1) {
      const name = `queue ${round}`
      const knobs = { globalConcurrency: null, releaseWhileWaiting: false, rateLimit: null, priorityEnabled: true }
      const queue = { name, ...knobs, partitioned: true, retention: null, configVersion: 0 }
      const runs = Array.from({ length: 8 }, (_, n) =>
        newRun(`${round}.${n}`, { queue: name, partitionKey: `key ${n}`, priority: n }),
      )
      await Promise.all([
        ...runs.slice(0, 4).map((run) => enqueue(database, run)),
        registerQueues(database, [queue]),
        ...runs.slice(4).map((run) => enqueue(database, run)),
      ])
      const rows = await database.read((session) =>
        session.query(
          `select r.lane, r.rank, l.lane from perdure.runs r
           left join perdure.lanes l on l.queue = r.queue and l.lane = r.lane
           where r.queue = $1 order by r.id`,
          [name],
        ),
      )
      expect(rows).toEqual(runs.map((_, n) => [`key ${n}`, n, `key ${n}`]))
    }
  })
})
