/** Encodes what user code throws. A reason is always recorded, if need be without what the thrown value carried along. */
import type { Codec } from '../core/codec.ts'
import type { EncodedValue } from '../store/records.ts'

export function encodeError(codec: Codec, error: unknown): EncodedValue {
  try {
    return codec.encode(error)
  } catch {
    return codec.encode(bare(error))
  }
}

function bare(error: unknown): Error {
  const plain = new Error(describeThrown(error))
  try {
    if (error instanceof Error) {
      plain.name = String(error.name)
      if (error.stack !== undefined) plain.stack = error.stack
    }
  } catch {
    // It throws when it is looked at: what could be read will do.
  }
  return plain
}

/** Thrown values may be anything, also objects that throw when they are looked at. */
export function describeThrown(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error)
  } catch {
    return 'a value that can be neither stored nor described'
  }
}
