/**
 * What a durable call is given, as it is when the call is made: a call is begun later, and the body may change the object
 * before that. A value that can't be stored is refused when the call is begun, so that the refusal is recorded.
 */
import type { Codec, EncodedValue } from '../../core/codec.ts'

export type Argument = { readonly text: EncodedValue } | { readonly refusal: unknown }

export function argumentOf(codec: Codec, value: unknown): Argument {
  try {
    return { text: codec.encode(value) }
  } catch (refusal) {
    return { refusal }
  }
}
