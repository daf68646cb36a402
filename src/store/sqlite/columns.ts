/** SQLite has no truth values: a flag is 0 or 1. */
import { number } from '../columns.ts'

export function flag(value: unknown): boolean {
  return number(value) !== 0
}
