/** The baseline: rows into one table of one file through the bare driver, synced as ours are. */
import Database from 'better-sqlite3'

export interface RawSqlite {
  /** Rows a second, in transactions of `rows` rows. */
  insert(rows: number, transactions: number): number
  /** Milliseconds of `times` transactions of one row, one after the other. */
  oneByOne(times: number): number
  /** Rows a second that are claimed (marked) and then deleted, `rows` a transaction, out of `total`. */
  claimAndDelete(rows: number, total: number): number
  close(): void
}

export function rawSqlite(path: string): RawSqlite {
  const database = new Database(path)
  database.pragma('journal_mode = wal')
  database.pragma('synchronous = full')
  database.exec('create table row (seq integer primary key, value text not null)')
  database.exec('create table queue (seq integer primary key, claimed integer not null, value text not null)')
  database.exec('create index queue_waiting on queue (seq) where claimed = 0')
  const enqueue = database.prepare('insert into queue (claimed, value) values (0, ?)')
  const claim = database
    .prepare(
      `update queue set claimed = 1 where seq in (select seq from queue where claimed = 0 order by seq limit ?)
       returning seq`,
    )
    .pluck()
  const remove = database.prepare('delete from queue where seq = ?')
  const statement = database.prepare('insert into row (value) values (?)')
  const transaction = database.transaction((rows: number) => {
    for (let row = 0; row < rows; row += 1) statement.run('{"file":"intro","size":1234}')
  })
  const timed = (body: () => void): number => {
    const start = performance.now()
    body()
    return performance.now() - start
  }
  const times = (count: number, rows: number): number =>
    timed(() => {
      for (let done = 0; done < count; done += 1) transaction(rows)
    })
  const waiting = database.transaction((rows: number) => {
    for (let row = 0; row < rows; row += 1) enqueue.run('{"file":"intro","size":1234}')
  })
  const claimed = database.transaction((rows: number) => claim.all(rows))
  const deleted = database.transaction((seqs: readonly unknown[]) => {
    for (const seq of seqs) remove.run(seq)
  })
  return {
    claimAndDelete: (rows, total) => {
      waiting(total)
      const ms = timed(() => {
        for (let done = 0; done < total; done += rows) deleted(claimed(rows))
      })
      return total / (ms / 1_000)
    },
    insert: (rows, transactions) => (rows * transactions) / (times(transactions, rows) / 1_000),
    oneByOne: (count) => times(count, 1),
    close: () => database.close(),
  }
}

/** Copies the last finished (or else any) run of a store's file `count` times, as finished long ago. */
export function fillFinished(path: string, count: number): void {
  const database = new Database(path)
  const columns = database
    .prepare(`select name from pragma_table_info('perdure_runs') where name not in ('seq', 'id', 'status', 'ended_at')`)
    .pluck()
    .all()
    .join(', ')
  database.exec(`
    with recursive n (n) as (select 1 union all select n + 1 from n where n < ${count})
    insert into perdure_runs (id, status, ended_at, ${columns})
    select 'filled-' || n, 'SUCCESS', n, ${columns}
    from n, (select * from perdure_runs where dedup_id is null and ended_at is null limit 1)`)
  database.close()
}
