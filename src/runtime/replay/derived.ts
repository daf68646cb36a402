/**
 * `ctx.uuid` and `ctx.random`: derived from the run id and their place among such calls, so that a replay gives the
 * same without a record. They take no position of a durable call: adding one to a body makes no replay diverge.
 */
import { sha256Hex } from '../../core/ids.ts'

export class DerivedRandom {
  readonly #runId: string
  #place = 0

  constructor(runId: string) {
    this.#runId = runId
  }

  /** In the form of a version 4 UUID (RFC 9562). */
  uuid(): string {
    const hex = this.#digest()
    const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  }

  /** In [0, 1), with the 52 bits that a double's fraction holds. */
  random(): number {
    return Number.parseInt(this.#digest().slice(0, 13), 16) / 2 ** 52
  }

  #digest(): string {
    this.#place += 1
    return sha256Hex(JSON.stringify(['derived', this.#runId, this.#place]))
  }
}
