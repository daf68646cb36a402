/**
 * Is a value plain JSON, so that JSON text alone gives back an equal one? This is the hot path of the codec: one walk
 * without allocations for flat values.
 *
 * Not plain: what JSON changes or drops (undefined, NaN, -0, Date, holes, ...), objects that are there twice or
 * contain themselves, and whatever can't be stored at all, which the checked copy (lower.ts) tells apart.
 */

/** Containers in containers. Beyond, plain JSON counts as not plain, and so is refused (lower.ts). */
export const MOST_PLAIN_LEVELS = 1_000

/** The key that marks an envelope, and so can't be the user's own at the top of a plain value. */
export const MARK = '$perdure'

export function isPlainJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isPlainScalar(value)
  return !Object.hasOwn(value, MARK) && isPlainContainer(value, 1, undefined)
}

function isPlainScalar(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
    default:
      return value === null
  }
}

function isPlainContainer(value: object, depth: number, seen: Set<object> | undefined): boolean {
  if (depth > MOST_PLAIN_LEVELS) return false
  if (Array.isArray(value)) return isPlainArray(value, depth, seen)
  if (Object.getPrototypeOf(value) !== Object.prototype || hasSymbols(value)) return false
  let met = seen
  for (const key of Object.keys(value)) {
    const member: unknown = Reflect.get(value, key)
    if (typeof member !== 'object' || member === null) {
      if (!isPlainScalar(member)) return false
      continue
    }
    met ??= new Set([value])
    if (met.has(member)) return false
    met.add(member)
    if (!isPlainContainer(member, depth + 1, met)) return false
  }
  return true
}

function isPlainArray(value: readonly unknown[], depth: number, seen: Set<object> | undefined): boolean {
  if (Object.getPrototypeOf(value) !== Array.prototype || hasSymbols(value)) return false
  // Holes read as undefined, so an array that passes has all its indexes: one key more is a named property.
  let met = seen
  for (const item of value) {
    if (typeof item !== 'object' || item === null) {
      if (!isPlainScalar(item)) return false
      continue
    }
    met ??= new Set<object>([value])
    if (met.has(item)) return false
    met.add(item)
    if (!isPlainContainer(item, depth + 1, met)) return false
  }
  return Object.keys(value).length === value.length
}

function hasSymbols(value: object): boolean {
  return Object.getOwnPropertySymbols(value).length > 0
}
