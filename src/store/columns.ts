/** Reads one column of a row as the type it is declared with, so that nothing untyped leaves the store. */
import type { FailureKind } from './records.ts'

/** A row holds what this library never writes. */
export class UnreadableValueError extends Error {}

export function text(value: unknown): string {
  if (typeof value === 'string') return value
  throw unreadable('a text', value)
}

export function textOrNull(value: unknown): string | null {
  return value === null ? null : text(value)
}

export function number(value: unknown): number {
  if (typeof value === 'number') return value
  throw unreadable('a number', value)
}

export function numberOrNull(value: unknown): number | null {
  return value === null ? null : number(value)
}

/** 0 or 1 where the database has no truth values. */
export function flag(value: unknown): boolean {
  return typeof value === 'boolean' ? value : number(value) !== 0
}

/** Reads a text that must be one of a few. */
export function word<T extends string>(words: readonly T[]): (value: unknown) => T {
  const known: ReadonlyMap<unknown, T> = new Map(words.map((it) => [it, it]))
  return (value) => {
    const found = known.get(value)
    if (found === undefined) throw unreadable(`one of ${words.join(', ')}`, value)
    return found
  }
}

export const failureKind = word<FailureKind>([
  'error',
  'transient',
  'permanent',
  'timeout',
  'crashed',
  'cancelled',
  'nondeterminism',
  'serialization',
])

export function failureKindOrNull(value: unknown): FailureKind | null {
  return value === null ? null : failureKind(value)
}

function unreadable(expected: string, value: unknown): UnreadableValueError {
  return new UnreadableValueError(`expected ${expected} in a column, found ${String(value)}`)
}
