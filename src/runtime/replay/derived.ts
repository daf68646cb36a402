/**
 * `ctx.uuid` and `ctx.random`: derived from the run id, the durable calls that precede them in their chain of the body,
 * and their place among such calls there, so that a replay gives the same without a record, also to chains that change
 * places. They take no position of a durable call: adding one to a body makes no replay diverge.
 */
import { sha256Hex } from '../../core/ids.ts'

export class DerivedRandom {
  readonly #runId: string
  readonly #lineage: () => number
  readonly #places = new Map<number, number>()

  /** `lineage` tells the chain that the caller is in. */
  constructor(runId: string, lineage: () => number) {
    this.#runId = runId
    this.#lineage = lineage
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
    const lineage = this.#lineage()
    const place = (this.#places.get(lineage) ?? 0) + 1
    this.#places.set(lineage, place)
    return sha256Hex(JSON.stringify(['derived', this.#runId, lineage, place]))
  }
}
