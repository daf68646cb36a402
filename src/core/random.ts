/** Randomness of the library itself (jitter, ids). A workflow's own is derived from its run id: replay/derived. */
import { randomFillSync } from 'node:crypto'

export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** Fills the array with random bytes and returns it. */
  fill(bytes: Uint8Array): Uint8Array
}

export const realRandom: Random = {
  next: () => Math.random(),
  fill: (bytes) => randomFillSync(bytes),
}
