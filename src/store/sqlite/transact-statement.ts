/** Statements of users, on the driver's own database: rows by names, whatever the driver. */
import type { SqlRow } from '../contract.ts'

/** What `better-sqlite3` and `node:sqlite` have in common. */
interface NativeDatabase {
  prepare(sql: string): NativeStatement
}
interface NativeStatement {
  /** better-sqlite3 only: whether it gives rows. It refuses the other method then. */
  readonly reader?: boolean
  all(...params: readonly unknown[]): unknown[]
  run(...params: readonly unknown[]): { readonly changes: number | bigint }
}

export function queryNative(native: unknown, sql: string, params: readonly unknown[]): readonly SqlRow[] {
  const statement = prepare(native, sql)
  if (statement.reader === false) {
    statement.run(...params)
    return []
  }
  return statement
    .all(...params)
    .filter(isRow)
    .map(plain)
}

export function runNative(native: unknown, sql: string, params: readonly unknown[]): { readonly changes: number } {
  const statement = prepare(native, sql)
  if (statement.reader !== true) return { changes: Number(statement.run(...params).changes) }
  statement.all(...params)
  const [row] = queryNative(native, 'select changes() as changes', [])
  return { changes: Number(row?.['changes']) }
}

function prepare(native: unknown, sql: string): NativeStatement {
  if (!isDatabase(native)) throw new TypeError('not a database of better-sqlite3 or node:sqlite')
  return native.prepare(sql)
}

function isDatabase(native: unknown): native is NativeDatabase {
  return typeof native === 'object' && native !== null && 'prepare' in native && typeof native.prepare === 'function'
}

/** Rows of `node:sqlite` have no prototype, which makes them other objects to whoever stores or compares them. */
function plain(row: SqlRow): SqlRow {
  return Object.getPrototypeOf(row) === null ? { ...row } : row
}

function isRow(row: unknown): row is SqlRow {
  return typeof row === 'object' && row !== null
}
