/** The package `pg`, an optional peer: loaded when a store is opened. */
import type pg from 'pg'
import { MissingDriverError } from '../../core/errors.ts'

export type Driver = Pick<typeof pg, 'Client' | 'Pool' | 'types'>

export async function loadDriver(store: string): Promise<Driver> {
  try {
    // Its default export is what every version 8 has.
    const { default: driver } = await import('pg')
    return driver
  } catch (error) {
    if (!isNotFound(error)) throw error
    throw new MissingDriverError({ store, drivers: ['pg@8'] }, { cause: error })
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
}
