/** Durations as users write them: a number of milliseconds, or a string that the `ms` package reads. */
import ms from 'ms'
import { ConfigurationError, InvalidDurationError } from './errors.ts'

/** Milliseconds, or a string such as `'250ms'`, `'30s'`, `'5m'`, `'1.5h'`, `'7d'`; `'100'` is 100 milliseconds. */
export type Duration = number | string

/** `ms` itself refuses longer strings by throwing an error of its own. */
const LONGEST_TEXT = 100

/** Some 250,000 years: with a longer one, the instant at which it is over would be no valid Date. */
const LONGEST_STORED_MS = 8e15

/**
 * The duration in milliseconds; zero is one, a fraction stays one. `option` names the option it was given for.
 *
 * @throws InvalidDurationError for what is negative, infinite, NaN, neither number nor string, or not readable.
 */
export function toMs(value: Duration, option: string): number {
  const parsed = typeof value === 'string' ? parse(value) : value
  if (typeof parsed !== 'number' || !Number.isFinite(parsed) || parsed < 0 || parsed > Number.MAX_SAFE_INTEGER) {
    throw new InvalidDurationError({ option, value })
  }
  return parsed === 0 ? 0 : parsed
}

/**
 * The duration in whole milliseconds, rounded up, as stores keep it; one that is longer than anything lasts is cut off.
 *
 * @throws InvalidDurationError as `toMs`, ConfigurationError if it is shorter than `minMs`.
 */
export function toWholeMs(value: Duration, option: string, minMs = 0): number {
  const ms = toMs(value, option)
  if (ms < minMs) {
    const problem = `${typeof value === 'string' ? `'${value}'` : value} is not allowed`
    throw new ConfigurationError({ option, problem, allowed: `a duration of at least ${minMs} ms` })
  }
  return Math.min(Math.ceil(ms), LONGEST_STORED_MS)
}

function parse(text: string): number | undefined {
  return isReadable(text) ? ms(text) : undefined
}

/** The types of `ms` list all spellings it reads; which of them a text is, only `ms` can tell. */
function isReadable(text: string): text is ms.StringValue {
  return text.length > 0 && text.length <= LONGEST_TEXT
}
