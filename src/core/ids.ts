/**
 * Ids and digests. Ids are UUIDv7 (RFC 9562): they sort by the time they were made, are monotonic within a
 * millisecond, and a clock that goes backwards never makes an id that sorts before an earlier one.
 */
import { hash } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

export interface Ids {
  /** A new time-ordered id, greater than every one made before by this object. */
  next(): string
}

/** Random bytes are drawn for many ids at a time: a system call an id would be half of its cost. */
const POOL_BYTES = 8 * 256
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

class TimeOrderedIds implements Ids {
  readonly #clock: Pick<Clock, 'now'>
  readonly #random: Random
  readonly #pool = new Uint8Array(POOL_BYTES)
  #used = POOL_BYTES
  #lastMs = 0
  /** The first two groups, which all ids of one millisecond share. */
  #time = ''
  /** The 12 bits of `rand_a`, used as a counter within one millisecond. */
  #counter = 0

  constructor(clock: Pick<Clock, 'now'>, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  next(): string {
    const now = Math.trunc(this.#clock.now())
    if (now > this.#lastMs) this.#begin(now)
    else if (++this.#counter > 0xfff) this.#begin(this.#lastMs + 1)
    const counter = (0x7000 | this.#counter).toString(16)
    return `${this.#time}-${counter}-${this.#randomHex(true)}${this.#randomHex()}-${this.#randomHex()}${this.#randomHex()}${this.#randomHex()}${this.#randomHex()}${this.#randomHex()}${this.#randomHex()}`
  }

  #begin(ms: number): void {
    this.#lastMs = ms
    this.#counter = 0
    const hex = ms.toString(16).padStart(12, '0')
    this.#time = `${hex.slice(0, 8)}-${hex.slice(8)}`
  }

  /** Two hex digits; the first byte of the third group carries the variant in its upper bits. */
  #randomHex(variant = false): string {
    if (this.#used === POOL_BYTES) {
      this.#random.fill(this.#pool)
      this.#used = 0
    }
    const byte = this.#pool[this.#used++] ?? 0
    return HEX[variant ? (byte & 0x3f) | 0x80 : byte] ?? '00'
  }
}

export function timeOrderedIds(clock: Pick<Clock, 'now'>, random: Random): Ids {
  return new TimeOrderedIds(clock, random)
}

/** The SHA-256 digest of a text's UTF-8 bytes, as 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex')
}
