/** A PostgreSQL for the benchmarks, whose commits are on disk when they are acknowledged, and what it counts. */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { startServer } from '../test/store/postgres/server.ts'

/** Sums since the server was started. */
export interface Counts {
  readonly walBytes: number
  readonly commits: number
  /** Versions of rows that were replaced or deleted, and wait for vacuum. */
  readonly deadRows: number
}

export interface BenchServer {
  readonly url: string
  counts(): Promise<Counts>
  /** Restarts it, so that it counts statements from now on. */
  countStatements(): Promise<void>
  /** Since `countStatements`, its own look at them apart. */
  statements(): Promise<number>
  stop(): Promise<void>
}

/** Until a server process has told what it counted. */
const TOLD_AFTER_MS = 1_500

const COUNTS = `
select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as "walBytes",
  (select xact_commit::float8 from pg_stat_database where datname = current_database()) as commits,
  (select coalesce(sum(n_tup_upd + n_tup_del), 0)::float8 from pg_stat_user_tables where schemaname = 'perdure')
    as "deadRows"`
const STATEMENTS = `select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements where query not like '%pg_stat%'`

export async function benchServer(): Promise<BenchServer> {
  const server = await startServer({ durable: true })
  const query = async <R extends pg.QueryResultRow>(sql: string): Promise<R> => {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    try {
      const { rows } = await client.query<R>(sql)
      const [row] = rows
      // A command has none.
      return row ?? ({} as R)
    } finally {
      await client.end()
    }
  }
  return {
    url: server.url,
    counts: async () => {
      await pause(TOLD_AFTER_MS)
      return await query<Counts & pg.QueryResultRow>(COUNTS)
    },
    countStatements: async () => {
      await query(`alter system set shared_preload_libraries = 'pg_stat_statements'`)
      await server.kill()
      await server.start()
      await query('create extension pg_stat_statements')
    },
    statements: async () => (await query<{ calls: number }>(STATEMENTS)).calls,
    stop: () => server.stop(),
  }
}
