/** Names and ids as users give them: what is refused is refused at the call, before anything is stored. */
import { InvalidIdError } from '../core/errors.ts'

const LONGEST_RUN_ID_BYTES = 128
const LONGEST_NAME_BYTES = 255

/** Definition, step and other names: 1 to 255 bytes of UTF-8 without control characters. */
export function checkName(what: string, name: unknown): asserts name is string {
  checkText(what, name, LONGEST_NAME_BYTES)
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
