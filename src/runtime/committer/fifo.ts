/** A queue whose operations cost the same however much waits in it (Array.shift does not promise that). */

/** Taken slots are given back in bulk, once they outnumber what waits. */
const COMPACT_AT = 1024

export class Fifo<T> {
  readonly #items: T[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** The one that `shift` would take. */
  first(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#head += 1
    if (this.#head === this.#items.length || (this.#head >= COMPACT_AT && this.#head * 2 > this.#items.length)) {
      this.#items.splice(0, this.#head)
      this.#head = 0
    }
    return item
  }
}
