/** Values of the KV space as they are stored: encoded, bounded, and with the hash that comparisons go by. */
import type { Codec, EncodedValue } from './codec.ts'
import { SerializationError } from './errors.ts'
import { sha256Hex } from './ids.ts'

const LONGEST_VALUE_BYTES = 1024 * 1024

export interface KvValue {
  readonly value: EncodedValue
  /** Equal for equal values, whatever the order of their keys. */
  readonly hash: string
}

/** @throws SerializationError for what the codec can't store, a text of more than 1 MiB, and undefined. */
export function kvValue(codec: Codec, key: string, value: unknown): KvValue {
  if (value === undefined) {
    const problem = `undefined means that the KV key '${key}' has no value: delete the key instead`
    throw new SerializationError({ path: '$', problem })
  }
  const text = codec.encode(value)
  // A UTF-16 unit takes three bytes at most: only long texts have to be measured.
  if (text.length * 3 > LONGEST_VALUE_BYTES && Buffer.byteLength(text) > LONGEST_VALUE_BYTES) {
    const problem = `the text of KV key '${key}' has ${Buffer.byteLength(text)} bytes, and may have 1 MiB at most`
    throw new SerializationError({ path: '$', problem })
  }
  return { value: text, hash: sha256Hex(codec.canonical(text)) }
}
