/** Where in a value something is, as text: `$.items[3].fn`. */

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/
const LONGEST_KEY = 60
const LONGEST_PATH = 40

export function propertySegment(key: string): string {
  if (IDENTIFIER.test(key)) return `.${key.slice(0, LONGEST_KEY)}`
  return `[${JSON.stringify(key.slice(0, LONGEST_KEY))}]`
}

export function indexSegment(index: number): string {
  return `[${index}]`
}

/** Of a value in a Map, by its key where that can be named. */
export function entrySegment(key: unknown, index: number): string {
  if (typeof key === 'string') return `.get(${JSON.stringify(key.slice(0, LONGEST_KEY))})`
  if (typeof key === 'number' || typeof key === 'boolean') return `.get(${key})`
  return `.values()[${index}]`
}

/** Long paths keep their two ends. */
export function pathText(segments: readonly string[]): string {
  if (segments.length <= LONGEST_PATH) return `$${segments.join('')}`
  const half = LONGEST_PATH / 2
  return `$${segments.slice(0, half).join('')}...${segments.slice(-half).join('')}`
}
