/** `perdure/postgres`: the store in one schema of a PostgreSQL database, which a fleet of processes shares. */
import type { Pool, PoolConfig } from 'pg'
import { checkSettings, type PostgresOptions } from './options.ts'
import { PostgresStore } from './store.ts'

export type { PostgresOptions } from './options.ts'
export type { PostgresStore } from './store.ts'

/**
 * A store in a PostgreSQL database (14 or newer), at a URL, or by a pool of the package `pg`, or by what such a pool is
 * made with. A pool that is given is never ended; it should have at least 5 connections, as transactions that wait for
 * each other's locks hold one each. Its own pool has at most 10.
 *
 * The tables are in a schema of their own, `perdure` unless the options name another, which is created when the store
 * is opened. Nothing is changed of the connections, so that they may come from a transaction-mode pooler; such a one
 * that doesn't know prepared statements needs `prepare: false`, and `listenUrl` for wake-ups.
 *
 * @example
 * const engine = new Engine({ store: postgres(process.env.DATABASE_URL), definitions: [convert] })
 *
 * @throws ConfigurationError for what names no database (such as an environment variable that is not set), and for options that are not allowed.
 */
export function postgres(
  connection: string | Pool | PoolConfig | undefined,
  options: PostgresOptions = {},
): PostgresStore {
  return new PostgresStore(checkSettings(connection, options), options.clock)
}
