import { type Codec, createCodec } from '../../../src/core/codec.ts'

export const codec: Codec = createCodec()
