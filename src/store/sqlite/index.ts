/** `perdure/sqlite`: the store in one SQLite file, which several processes of one host may open at a time. */
import type { Clock } from '../../core/clock.ts'
import { realClock } from '../../core/clock.ts'
import { checkClock, checkOptions } from '../../core/options.ts'
import type { Store } from '../contract.ts'
import { checkPath } from './file.ts'
import { SqliteStore } from './store.ts'

export interface SqliteOptions {
  /** Default: the host's clock. */
  readonly clock?: Clock
}

/**
 * A store in the file at `path`, which is created when it is opened. The file may be an application's own database:
 * the store's tables are named `perdure_*`, and the database is kept in WAL mode. A relative path is resolved by this
 * call, whatever the working directory is later.
 *
 * Needs `node:sqlite` (Node 22.13 or newer) or the package `better-sqlite3`. The file must be on a local disk.
 *
 * @throws ConfigurationError for what is no path of a file, and for options that are not allowed.
 */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  checkOptions('sqlite', options, ['clock'])
  checkPath(path)
  if (options.clock !== undefined) checkClock('sqlite.clock', options.clock)
  return new SqliteStore(path, options.clock ?? realClock)
}
