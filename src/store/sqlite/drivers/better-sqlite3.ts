/** The package `better-sqlite3`, an optional peer dependency. */

import type { Connection, Driver, Statement } from '../driver.ts'
import { isErrorWithCode } from '../trouble.ts'

/** better-sqlite3 names the codes; these are the ones that the store tells apart. */
const RESULT_CODES: ReadonlyMap<string, number> = new Map([
  ['PERM', 3],
  ['BUSY', 5],
  ['LOCKED', 6],
  ['NOMEM', 7],
  ['READONLY', 8],
  ['IOERR', 10],
  ['CORRUPT', 11],
  ['FULL', 13],
  ['CANTOPEN', 14],
  ['PROTOCOL', 15],
  ['NOTADB', 26],
])
const OTHER_CODE = 1

/** undefined: the package is not installed. An installed one that doesn't load tells why. */
export async function loadBetterSqlite3(): Promise<Driver | undefined> {
  let module: typeof import('better-sqlite3')
  try {
    module = (await import('better-sqlite3')).default
  } catch (error) {
    if (isErrorWithCode(error) && error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
  return {
    name: 'better-sqlite3',
    connect: (path, { readOnly }) => connection(new module(path, { readonly: readOnly, timeout: 0 })),
    resultCode,
  }
}

function connection(database: import('better-sqlite3').Database): Connection {
  return {
    prepare(sql): Statement {
      const statement = database.prepare<unknown[], readonly unknown[]>(sql)
      return statement.reader ? statement.raw() : statement
    },
    exec(sql) {
      database.exec(sql)
    },
    close() {
      database.close()
    },
    native: database,
  }
}

/** Codes are 'SQLITE_BUSY', extended ones 'SQLITE_BUSY_SNAPSHOT'. */
function resultCode(error: unknown): number | undefined {
  if (!isErrorWithCode(error) || !error.code.startsWith('SQLITE_')) return undefined
  return RESULT_CODES.get(error.code.split('_')[1] ?? '') ?? OTHER_CODE
}
