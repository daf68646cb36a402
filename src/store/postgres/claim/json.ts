/** What a statement gives as JSON, read as the type it is meant to be. */
import { number, UnreadableValueError } from '../../columns.ts'
import type { Ledger } from '../ledger.ts'

/** No value at all is an empty list, as `json_agg` has it. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === null) return []
  if (Array.isArray(value)) return value
  throw new UnreadableValueError(`expected a list, found ${String(value)}`)
}

export function toLedger(value: unknown): Ledger | null {
  if (value === null) return null
  const [first, last, lastAt, oldest] = listOf(value)
  return {
    first: number(first),
    last: number(last),
    lastAt: number(lastAt),
    oldest: listOf(oldest ?? null).map(number),
  }
}
