/**
 * Checks of options at the public edge. Each throws a ConfigurationError that names the option and says what is
 * allowed; a misspelt option is answered with the one that was probably meant.
 */
import type { Clock } from './clock.ts'
import { ConfigurationError } from './errors.ts'

/** Refuses what is not a plain object, and options that don't exist. `what` is the call or object they are for. */
export function checkOptions(what: string, given: unknown, allowed: readonly string[]): void {
  if (!isPlainObject(given)) {
    throw new ConfigurationError({
      option: what,
      problem: `options are a plain object, not ${described(given)}`,
      allowed: allowed.join(', '),
    })
  }
  for (const option of Object.keys(given)) {
    if (allowed.includes(option)) continue
    const meant = nearest(option, allowed)
    throw new ConfigurationError({
      option: `${what}.${option}`,
      problem: `there is no such option${meant === undefined ? '' : `; did you mean '${meant}'?`}`,
      allowed: allowed.join(', '),
    })
  }
}

/** The number, if it is a whole one of at least `min`, and at most `max` if that is given. */
export function integerOption(option: string, value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
  const allowed = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  throw wrong(option, value, `a whole number ${allowed}`)
}

/** The number, if it is finite and between `min` and `max`, both included. */
export function numberOption(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= min && value <= max) return value
  throw wrong(
    option,
    value,
    max === Number.MAX_VALUE ? `a number of at least ${min}` : `a number from ${min} to ${max}`,
  )
}

export function booleanOption(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw wrong(option, value, 'true or false')
}

/** The text, if it is not empty. */
export function textOption(option: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw wrong(option, value, 'a text that is not empty')
}

export function choiceOption<T extends string>(option: string, value: unknown, choices: readonly T[]): T {
  const chosen = choices.find((choice) => choice === value)
  if (chosen !== undefined) return chosen
  throw wrong(option, value, choices.map((choice) => `'${choice}'`).join(', '))
}

/** Refuses what is not a function. */
export function checkFunction(option: string, value: unknown): void {
  if (typeof value !== 'function') throw wrong(option, value, 'a function')
}

/** Refuses what is no clock of this library. */
export function checkClock(option: string, value: unknown): asserts value is Clock {
  if (isClock(value)) return
  throw new ConfigurationError({ option, problem: 'it is no clock', allowed: 'a MockClock' })
}

/** The candidate that `text` is probably a misspelling of, if one is near enough. */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(text.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(text.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function wrong(option: string, value: unknown, allowed: string): ConfigurationError {
  return new ConfigurationError({ option, problem: `${described(value)} is not allowed`, allowed })
}

function isClock(value: unknown): value is Clock {
  return typeof value === 'object' && value !== null && ['now', 'at', 'join'].every((method) => method in value)
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function described(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? 'a long text' : `'${value}'`
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean')
    return `${value}`
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Levenshtein's: insertions, deletions and replacements of one character that make the one text the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
