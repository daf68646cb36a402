/** What the store needs of a SQLite driver, and no more, so that any can serve. */

export type SqlValue = string | number | null
/** The columns of a row in the order selected; columns.ts reads them. */
export type Row = readonly unknown[]

export interface Written {
  readonly changes: number | bigint
  readonly lastInsertRowid: number | bigint
}

/** Parameters are written `?`, never numbered: better-sqlite3 takes `?1` for a name. */
export interface Statement {
  run(...values: readonly SqlValue[]): Written
  get(...values: readonly SqlValue[]): Row | undefined
  all(...values: readonly SqlValue[]): readonly Row[]
}

export interface Connection {
  prepare(sql: string): Statement
  /** Runs statements without values or results. */
  exec(sql: string): void
  close(): void
  /** The driver's own object, for SQL of users. */
  readonly native: unknown
}

export type DriverName = 'node:sqlite' | 'better-sqlite3'

/** Connections never wait for a lock: a statement that finds one fails as busy at once. */
export interface Driver {
  readonly name: DriverName
  connect(path: string, options: { readonly readOnly: boolean }): Connection
  /** The primary result code of SQLite (5 is busy, 13 is full, ...); undefined for errors of other origin. */
  resultCode(error: unknown): number | undefined
}
