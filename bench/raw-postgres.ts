/** The baseline: one table of a database through the bare driver, prepared and synced as ours are. */
import pg from 'pg'
import { closedLoop } from './measure.ts'

export interface RawPostgres {
  /** Rows a second of callers that insert one row each time, on a connection of their own. */
  oneByOne(callers: number, total: number): Promise<number>
  /** The same callers, whose rows go into one statement: all that wait while the last one is under way. */
  coalesced(callers: number, total: number): Promise<number>
  /** Rows a second, in statements of `rows` rows, one after the other. */
  multiRow(rows: number, total: number): Promise<number>
  /** Rows a second that are claimed (marked) and then updated with a result, `rows` a transaction, out of `total`. */
  claimAndUpdate(rows: number, total: number): Promise<number>
  close(): Promise<void>
}

/** As somebody would write it who finds a run by its id, and has several queues. */
const TABLE = `
create schema raw;
create table raw.queue (seq bigserial primary key, id text not null unique, queue text not null, status text not null,
  created_at timestamptz not null default now(), input text not null, output text);
create index queue_waiting on raw.queue (queue, seq) where status = 'waiting'`
const INPUT = '{"file":"intro","size":1234}'

const INSERT = {
  name: 'insert',
  text: `insert into raw.queue (id, queue, status, input) values ($1, 'bench', 'done', $2)`,
}
const INSERT_MANY = {
  name: 'insert-many',
  text: `insert into raw.queue (id, queue, status, input) select id, 'bench', $1, input
    from unnest($2::text[], $3::text[]) as u (id, input)`,
}
const CLAIM = {
  name: 'claim',
  text: `update raw.queue set status = 'running' where seq in (
    select seq from raw.queue where status = 'waiting' and queue = 'bench' order by seq limit $1 for no key update skip locked)
    returning seq, input`,
}
const UPDATE = {
  name: 'update',
  text: `update raw.queue q set status = 'done', output = u.output from unnest($1::bigint[], $2::text[]) as u (seq, output)
    where q.seq = u.seq`,
}

export async function rawPostgres(connectionString: string): Promise<RawPostgres> {
  const pool = new pg.Pool({ connectionString, max: 50 })
  await pool.query(TABLE)
  let ids = 0
  const nextId = (): string => `${String(ids++).padStart(12, '0')}-7c1d-4d0b-9a57`
  const insertMany = (status: string, inputs: readonly string[]): Promise<unknown> =>
    pool.query({ ...INSERT_MANY, values: [status, inputs.map(nextId), inputs] })

  /** One of these at a time, so the pool uses one connection. */
  const inHundreds = async (rows: number, total: number): Promise<void> => {
    for (let done = 0; done < total; done += rows) {
      const claimed = await pool.query<{ seq: string; input: string }>({ ...CLAIM, values: [rows] })
      const values = [claimed.rows.map(({ seq }) => seq), claimed.rows.map(({ input }) => input)]
      await pool.query({ ...UPDATE, values })
    }
  }

  return {
    oneByOne: async (callers, total) =>
      (await closedLoop(callers, total, () => pool.query({ ...INSERT, values: [nextId(), INPUT] }))).perSecond,
    coalesced: async (callers, total) => (await closedLoop(callers, total, coalescing(insertMany))).perSecond,
    multiRow: async (rows, total) => {
      const inputs = Array.from({ length: rows }, () => INPUT)
      return (await closedLoop(1, total / rows, () => insertMany('done', inputs))).perSecond * rows
    },
    claimAndUpdate: async (rows, total) => {
      const inputs = Array.from({ length: 1_000 }, () => INPUT)
      for (let n = 0; n < total; n += inputs.length) await insertMany('waiting', inputs)
      const start = performance.now()
      await inHundreds(rows, total)
      return total / ((performance.now() - start) / 1_000)
    },
    close: () => pool.end(),
  }
}

function coalescing(insertMany: (status: string, inputs: readonly string[]) => Promise<unknown>): () => Promise<void> {
  let waiting: (() => void)[] = []
  let sending = false
  const send = async (): Promise<void> => {
    sending = true
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await insertMany(
        'done',
        batch.map(() => INPUT),
      )
      for (const answered of batch) answered()
      // So that those who were just answered can join the next.
      await new Promise((resolve) => setImmediate(resolve))
    }
    sending = false
  }
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (!sending) void send()
    })
}
