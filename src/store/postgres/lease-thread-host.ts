/** The lease thread of this store: a connection of its own, made as those of the pool are. */
import type { ClientConfig } from 'pg'
import type { LeaseThread, LeaseThreadOptions } from '../contract.ts'
import type { ThreadTimes } from '../lease-thread-host.ts'
import { LeaseThreadHost } from '../lease-thread-host.ts'
import { clonedConfig } from './client-config.ts'
import { RENEW, RENEW_LOCKED } from './leases.ts'

/** What lease-thread.js is started with. */
export interface ThreadData extends ThreadTimes {
  readonly connection: ClientConfig
  readonly renewSql: string
  readonly renewLockedSql: string
}

const SCRIPT = new URL('./lease-thread.js', import.meta.url)

/**
 * null: how to connect can't be told to another thread. `render` puts the schema of the store into a statement.
 */
export function startLeaseThread(
  { connection, render }: { readonly connection: ClientConfig; readonly render: (sql: string) => string },
  options: LeaseThreadOptions,
): LeaseThread | null {
  const cloned = clonedConfig(connection)
  if (cloned === null) return null
  const data: Omit<ThreadData, keyof ThreadTimes> = {
    connection: cloned,
    renewSql: render(RENEW),
    renewLockedSql: render(RENEW_LOCKED),
  }
  return new LeaseThreadHost(SCRIPT, data, options)
}
