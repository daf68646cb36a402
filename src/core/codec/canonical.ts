/**
 * A lowered value as text that is equal exactly for equal values: keys sorted, shared objects written out, the order
 * of Map and Set kept. Plain JSON gives plain JSON, so writers in other languages can compute the same hash; what is
 * beyond JSON is written in words that can't occur in JSON.
 */
import { Stored } from './stored.ts'

/** Objects in one another, shared twofold on each of a hundred levels, would take for ever to write out. */
const MOST_CONTAINERS = 5_000_000

export function canonicalText(lowered: unknown): string {
  const writer = new CanonicalWriter()
  return writer.write(lowered)
}

class CanonicalWriter {
  /** The containers that the current one is in. */
  readonly #open: object[] = []
  #containers = 0

  write(value: unknown): string {
    if (typeof value !== 'object' || value === null) return scalar(value)
    if (++this.#containers > MOST_CONTAINERS) throw new RangeError('it is too large to be compared')
    const at = this.#open.lastIndexOf(value)
    // How many levels up, which is the same in equal values.
    if (at !== -1) return `cycle(${this.#open.length - at})`
    this.#open.push(value)
    const text = this.#container(value)
    this.#open.pop()
    return text
  }

  #container(value: object): string {
    if (Array.isArray(value))
      return `[${Array.from(value, (item, at) => (at in value ? this.write(item) : 'hole')).join(',')}]`
    if (value instanceof Date) return `Date(${value.getTime()})`
    if (value instanceof Set) return `Set(${Array.from(value, (member) => this.write(member)).join(',')})`
    if (value instanceof Map) {
      return `Map(${Array.from(value, ([key, member]) => `${this.write(key)}:${this.write(member)}`).join(',')})`
    }
    if (value instanceof Stored) return `${value.kind}(${this.write(value.head)},${this.write(value.body)})`
    return `${Object.getPrototypeOf(value) === null ? 'null' : ''}{${this.#properties(value)}}`
  }

  #properties(value: object): string {
    const keys = Object.keys(value).sort()
    return keys.map((key) => `${JSON.stringify(key)}:${this.write(Reflect.get(value, key))}`).join(',')
  }
}

function scalar(value: unknown): string {
  if (typeof value === 'bigint') return `bigint(${value})`
  if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) {
    return Object.is(value, -0) ? '-0' : `${value}`
  }
  return value === undefined ? 'undefined' : JSON.stringify(value)
}
