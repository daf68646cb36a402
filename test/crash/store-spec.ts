/** A store as a text, so that one process can tell another which one to open: the path of a file, or a schema as JSON. */
import type { PoolConfig } from 'pg'
import type { Store } from '../../src/store/contract.ts'
import type { PostgresOptions } from '../../src/store/postgres/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'

/** All of it survives being JSON. */
export interface PostgresSpec extends Omit<PostgresOptions, 'clock'> {
  readonly url: string
  /** Of the pool. */
  readonly pool?: PoolConfig
}

export function specOf(schema: PostgresSpec): string {
  return JSON.stringify(schema)
}

export function storeOf(spec: string): Store {
  if (!spec.startsWith('{')) return sqlite(spec)
  const { url, pool, ...options }: PostgresSpec = JSON.parse(spec)
  return postgres({ connectionString: url, ...pool }, options)
}
