/** What the files of this store run their statements through. */
import type { EpochMs } from '../../core/clock.ts'

/** Columns in the order selected. `bigint` comes as a number, `json` as text. */
export type Row = readonly unknown[]

export interface Session {
  /**
   * Runs one statement: static text, in which `perdure.` stands for the schema of the store, prepared by name. Arrays
   * are passed as arrays of PostgreSQL.
   */
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

/** A transaction at READ COMMITTED: each of its statements sees what was committed before it began. */
export interface Transaction extends Session {
  /** The instant by the store's clock, given that of the database (`NOW`) as a statement of this transaction read it. */
  instant(databaseNow: unknown): EpochMs
  /**
   * Says that all statements have been given: COMMIT follows them at once, without waiting for their answers. Only where
   * nothing but the error of a statement is a reason not to commit.
   */
  finish(): void
}

/** The database's clock in milliseconds, now rather than when the transaction began. */
export const NOW = 'pg_catalog.floor(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint'

/** Thrown in a transaction that has met what another one did meanwhile: it is rolled back and run again. */
export class Interference extends Error {
  constructor(what: string) {
    super(`another transaction was faster: ${what}`)
    this.name = 'Interference'
  }
}

/** Another transaction holds a lock that this one wants for longer than it may wait, or both wait for each other. */
export class LockedError extends Error {
  constructor(cause: unknown) {
    super('another transaction holds a lock that this one needs', { cause })
    this.name = 'LockedError'
  }
}
