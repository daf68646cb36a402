/**
 * What an error of SQLite means for the caller: wait a moment (busy), try again later (the disk, the file), stop
 * (corruption), or, for everything else, that the database refuses the command at hand.
 */
import { PerdureError, StoreCorruptError, StoreUnavailableError } from '../../core/errors.ts'
import { UnreadableValueError } from '../columns.ts'
import type { Driver } from './driver.ts'

const BUSY: ReadonlySet<number> = new Set([5, 6])
/** PERM, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL. */
const UNAVAILABLE: ReadonlySet<number> = new Set([3, 7, 8, 10, 13, 14, 15])
/** CORRUPT, NOTADB. */
const CORRUPT: ReadonlySet<number> = new Set([11, 26])
const GENERIC = 1
const READ_ONLY: ReadonlySet<number> = new Set([8, 14])

/** True if another connection is in the way: the same call may succeed a moment later. */
export function isBusy(driver: Driver, error: unknown): boolean {
  return BUSY.has(driver.resultCode(error) ?? 0)
}

/** True for what a read-only connection can't do where a writing one could (recover after a crash). */
export function needsWriting(driver: Driver, error: unknown): boolean {
  return READ_ONLY.has(driver.resultCode(error) ?? 0)
}

/** True if a statement names what the schema doesn't have. */
export function missesSchema(driver: Driver, error: unknown): boolean {
  if (driver.resultCode(error) !== GENERIC || !(error instanceof Error)) return false
  return /no such (table|column|index)/.test(error.message)
}

/** The error to reject with. */
export function explained(driver: Driver, store: string, error: unknown): unknown {
  if (error instanceof PerdureError) return error
  if (error instanceof UnreadableValueError) {
    return new StoreCorruptError({ store, problem: error.message }, { cause: error })
  }
  const code = driver.resultCode(error) ?? 0
  const details = { store, problem: error instanceof Error ? error.message : String(error) }
  if (CORRUPT.has(code)) return new StoreCorruptError(details, { cause: error })
  if (UNAVAILABLE.has(code) || BUSY.has(code)) return new StoreUnavailableError(details, { cause: error })
  return error
}

export function isErrorWithCode(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
}
