/**
 * The choice between the drivers that exist: `node:sqlite` where this Node has it without a flag (nothing to
 * install), otherwise the package `better-sqlite3`. Loaded when a store is opened.
 */
import { MissingDriverError } from '../../../core/errors.ts'
import type { Driver } from '../driver.ts'
import { loadBetterSqlite3 } from './better-sqlite3.ts'
import { loadNodeSqlite } from './node-sqlite.ts'

export async function loadDriver(store: string): Promise<Driver> {
  const driver = loadNodeSqlite() ?? (await loadBetterSqlite3())
  if (driver === undefined) throw new MissingDriverError({ store, drivers: ['better-sqlite3@12'] })
  return driver
}
