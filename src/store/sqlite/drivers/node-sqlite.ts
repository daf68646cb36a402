/** `node:sqlite`, part of Node and unflagged from 22.13. Declared here, as the types of Node 20 don't know it. */

import type { Connection, Driver, Row, SqlValue, Statement, Written } from '../driver.ts'
import { isErrorWithCode } from '../trouble.ts'

interface NodeStatement {
  run(...values: readonly SqlValue[]): Written
  get(...values: readonly SqlValue[]): object | undefined
  all(...values: readonly SqlValue[]): readonly object[]
  /** From Node 22.16 and 24.0 on; rows are objects before. */
  setReturnArrays?(enabled: boolean): void
}

interface NodeDatabase {
  prepare(sql: string): NodeStatement
  exec(sql: string): void
  close(): void
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string, options: { readonly readOnly: boolean }) => NodeDatabase
}

/** undefined: this Node has no `node:sqlite`, or only behind a flag. */
export function loadNodeSqlite(): Driver | undefined {
  const module = process.getBuiltinModule('node:sqlite')
  if (!isNodeSqlite(module)) return undefined
  return {
    name: 'node:sqlite',
    connect: (path, { readOnly }) => connection(new module.DatabaseSync(path, { readOnly })),
    resultCode,
  }
}

function isNodeSqlite(module: object | undefined): module is NodeSqlite {
  return module !== undefined && 'DatabaseSync' in module && typeof module.DatabaseSync === 'function'
}

function connection(database: NodeDatabase): Connection {
  return {
    prepare: (sql) => statement(database.prepare(sql)),
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    native: database,
  }
}

function statement(inner: NodeStatement): Statement {
  inner.setReturnArrays?.(true)
  return {
    run: (...values) => inner.run(...values),
    get(...values) {
      const row = inner.get(...values)
      return row === undefined ? undefined : toRow(row)
    },
    all: (...values) => inner.all(...values).map(toRow),
  }
}

function toRow(row: object): Row {
  return Array.isArray(row) ? row : Object.values(row)
}

/** `errcode` is the extended code; its low byte is the primary one. */
function resultCode(error: unknown): number | undefined {
  if (!isErrorWithCode(error) || error.code !== 'ERR_SQLITE_ERROR' || !('errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}
