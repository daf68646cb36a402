/** Names and ids as users give them: what is refused is refused at the call, before anything is stored. */
import { InvalidIdError } from './errors.ts'

const LONGEST_RUN_ID_BYTES = 128
const LONGEST_NAME_BYTES = 255
/** What begins with it is the library's own. */
const RESERVED_PREFIX = 'perdure:'

/** Names of steps and signals, keys and ids of queues: 1 to 255 bytes of UTF-8 without control characters. */
export function checkName(what: string, name: unknown): asserts name is string {
  checkText(what, name, LONGEST_NAME_BYTES)
}

/** Names of definitions, queues and values of the KV space: those, and without the prefix `perdure:`. */
export function checkOwnName(what: string, name: unknown): asserts name is string {
  checkName(what, name)
  if (name.startsWith(RESERVED_PREFIX))
    throw new InvalidIdError({ what, id: name, problem: `'${RESERVED_PREFIX}' is reserved for the library itself` })
}

/** What the names looked for begin with: a name, or the beginning of one, or nothing. */
export function checkPrefix(what: string, prefix: unknown): asserts prefix is string {
  if (prefix !== '') checkOwnName(what, prefix)
}

/** Ids of runs that may exist: 1 to 128 bytes of UTF-8 without control characters. */
export function checkRunId(id: unknown): asserts id is string {
  checkText('run id', id, LONGEST_RUN_ID_BYTES)
}

/** Ids that are given to new runs: those, and without `~`, which marks children's ids. */
export function checkNewRunId(id: unknown): asserts id is string {
  checkRunId(id)
  if (id.includes('~'))
    throw new InvalidIdError({ what: 'run id', id, problem: "'~' is reserved for the ids of children" })
}

function checkText(what: string, text: unknown, longestBytes: number): asserts text is string {
  const problem = problemOf(text, longestBytes)
  if (problem !== undefined) throw new InvalidIdError({ what, id: text, problem })
}

function problemOf(text: unknown, longestBytes: number): string | undefined {
  if (typeof text !== 'string') return `it is ${text === null ? 'null' : typeof text}, not a string`
  if (text === '') return 'it is empty'
  // A UTF-16 unit takes three bytes at most: only long texts have to be measured.
  if (text.length * 3 > longestBytes && Buffer.byteLength(text) > longestBytes)
    return `it is longer than ${longestBytes} bytes`
  if (/\p{Cc}/u.test(text)) return 'it contains a control character'
  if (/\p{Cs}/u.test(text)) return 'it contains half of a surrogate pair'
  return undefined
}
