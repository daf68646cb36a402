/**
 * Values as text and back. Plain JSON is stored as plain JSON, which SQL and other languages read and write; all that
 * is beyond it round-trips in an envelope, `{"$perdure":1,"value":...}`. docs/values.md says what can be stored.
 *
 * What `decode` returns equals what `encode` was given, prototypes included; what can't come back so is refused by
 * `encode` with a SerializationError that names the path. The text never holds a NUL or a lone surrogate (they are
 * escaped), so every database takes it.
 */
import { canonicalText } from './codec/canonical.ts'
import { readEnvelope, writeEnvelope } from './codec/envelope.ts'
import { type ErrorClass, type ErrorRegistry, errorRegistry } from './codec/error.ts'
import { lower } from './codec/lower.ts'
import { isPlainJson, MARK } from './codec/plain.ts'
import { SerializationError } from './errors.ts'

export type { ErrorClass } from './codec/error.ts'

/** Text made by the codec. */
export type EncodedValue = string

export interface Codec {
  /** @throws SerializationError, naming the path, for what can't be stored. */
  encode(value: unknown): EncodedValue
  /** A value of its own at each call. @throws SerializationError for text that no codec has written. */
  decode(text: EncodedValue): unknown
  /**
   * Text that is the same for equal values, whatever the order of their keys, and differs for others: for hashes.
   * Takes encoded text, not a value.
   */
  canonical(text: EncodedValue): string
}

export interface CodecOptions {
  /** Error classes whose instances come back as such. */
  readonly errors?: readonly ErrorClass[]
}

/** @throws ConfigurationError if an entry of `errors` is no error class, or two have one name. */
export function createCodec(options: CodecOptions = {}): Codec {
  const registry = errorRegistry(options.errors ?? [])
  return {
    encode: (value) => guarded('it is nested too deeply to be written', () => encode(value)),
    decode: (text) => guarded('the stored text is damaged', () => decode(text, registry)),
    canonical: (text) => guarded('it can not be compared', () => canonical(text, registry)),
  }
}

/** What sleeps and steps without a result record, so often that it is not written anew each time. */
const UNDEFINED_TEXT = writeEnvelope(undefined)

function encode(value: unknown): EncodedValue {
  if (value === undefined) return UNDEFINED_TEXT
  return isPlain(value) ? JSON.stringify(value) : writeEnvelope(lower(value))
}

/** A value that throws when it is read is not plain; `lower` finds out where it throws. */
function isPlain(value: unknown): boolean {
  try {
    return isPlainJson(value)
  } catch {
    return false
  }
}

function decode(text: EncodedValue, registry: ErrorRegistry): unknown {
  if (text === UNDEFINED_TEXT) return undefined
  const value: unknown = JSON.parse(text)
  return isEnvelope(value) ? readEnvelope(value, registry) : value
}

function canonical(text: EncodedValue, registry: ErrorRegistry): string {
  const value: unknown = JSON.parse(text)
  return canonicalText(isEnvelope(value) ? lower(readEnvelope(value, registry)) : value)
}

function isEnvelope(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, MARK)
}

/** What is thrown here besides refusals: texts that don't parse, and the end of the stack. */
function guarded<T>(problem: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (SerializationError.is(error)) throw error
    const detail = error instanceof Error ? error.message : String(error)
    throw new SerializationError({ path: '$', problem: `${problem}: ${detail}` }, { cause: error })
  }
}
