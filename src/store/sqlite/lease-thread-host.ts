/** The lease thread of this store: a connection of its own to the file, on which it may wait for locks. */
import type { LeaseThread, LeaseThreadOptions } from '../contract.ts'
import type { ThreadTimes } from '../lease-thread-host.ts'
import { LeaseThreadHost } from '../lease-thread-host.ts'
import type { Database } from './database.ts'
import type { DriverName } from './driver.ts'
import { RENEW } from './leases.ts'

/** What lease-thread.js is started with. */
export interface ThreadData extends ThreadTimes {
  readonly driver: DriverName
  readonly path: string
  readonly renewSql: string
}

/** What the thread needs of a driver's connection. */
export interface ThreadConnection {
  prepare(sql: string): {
    run(): unknown
    get(leaseUntil: number, runId: string, token: string): { readonly cancel_requested: number } | undefined
  }
  exec(sql: string): unknown
  close(): unknown
}

const SCRIPT = new URL('./lease-thread.js', import.meta.url)

export function startLeaseThread(database: Database, options: LeaseThreadOptions): LeaseThread {
  const data: Omit<ThreadData, keyof ThreadTimes> = {
    driver: database.driver.name,
    path: database.path,
    renewSql: RENEW,
  }
  return new LeaseThreadHost(SCRIPT, data, options)
}
