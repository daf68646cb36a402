/**
 * Ids and digests. Ids are UUIDv7 (RFC 9562): they sort by the time they were made, are monotonic within a
 * millisecond, and a clock that goes backwards never makes an id that sorts before an earlier one.
 */
import { createHash } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

export interface Ids {
  /** A new time-ordered id, greater than every one made before by this object. */
  next(): string
}

/** Random bytes are drawn for many ids at a time: one system call an id would be half of its cost. */
const POOL_BYTES = 8 * 256
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

class TimeOrderedIds implements Ids {
  readonly #clock: Pick<Clock, 'now'>
  readonly #random: Random
  readonly #pool = new Uint8Array(POOL_BYTES)
  #used = POOL_BYTES
  #lastMs = 0
  /** The 12 bits of `rand_a`, used as a counter within one millisecond. */
  #counter = 0

  constructor(clock: Pick<Clock, 'now'>, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  next(): string {
    const now = Math.trunc(this.#clock.now())
    if (now > this.#lastMs) {
      this.#lastMs = now
      this.#counter = 0
    } else if (++this.#counter > 0xfff) {
      this.#lastMs += 1
      this.#counter = 0
    }
    return this.#format()
  }

  #format(): string {
    if (this.#used === POOL_BYTES) {
      this.#random.fill(this.#pool)
      this.#used = 0
    }
    const at = this.#used
    this.#used += 8
    const time = this.#lastMs.toString(16).padStart(12, '0')
    const counter = this.#counter.toString(16).padStart(3, '0')
    const byte = (offset: number): number => this.#pool[at + offset] ?? 0
    const hex = (value: number): string => HEX[value] ?? '00'
    const variant = hex((byte(0) & 0x3f) | 0x80)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${variant}${hex(byte(1))}-${hex(byte(2))}${hex(byte(3))}${hex(byte(4))}${hex(byte(5))}${hex(byte(6))}${hex(byte(7))}`
  }
}

export function timeOrderedIds(clock: Pick<Clock, 'now'>, random: Random): Ids {
  return new TimeOrderedIds(clock, random)
}

/** The SHA-256 digest of a text's UTF-8 bytes, as 64 hex digits. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}
