/** The baseline: rows into one table of one file through the bare driver, synced as ours are. */
import Database from 'better-sqlite3'

export interface RawSqlite {
  /** Rows a second, in transactions of `rows` rows. */
  insert(rows: number, transactions: number): number
  /** Milliseconds of `times` transactions of one row, one after the other. */
  oneByOne(times: number): number
  close(): void
}

export function rawSqlite(path: string): RawSqlite {
  const database = new Database(path)
  database.pragma('journal_mode = wal')
  database.pragma('synchronous = full')
  database.exec('create table row (seq integer primary key, value text not null)')
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
  return {
    insert: (rows, transactions) => (rows * transactions) / (times(transactions, rows) / 1_000),
    oneByOne: (count) => times(count, 1),
    close: () => database.close(),
  }
}
