/**
 * Ids in order of a rank, then of their place: what is due next, whose lease ends next, who is first in line.
 *
 * A binary heap that knows where each id sits, so that an id can also be taken out of the middle: every change
 * costs O(log n) and nothing stale is kept.
 */

export interface Entry {
  readonly id: string
  readonly rank: number
  /** Breaks ties between equal ranks, so that the order is total. */
  readonly place: number
}

export class OrderedIndex {
  readonly #heap: Entry[] = []
  readonly #slots = new Map<string, number>()

  get size(): number {
    return this.#heap.length
  }

  first(): Entry | undefined {
    return this.#heap[0]
  }

  /** Adds an id, or moves it to its new rank. */
  set(id: string, rank: number, place: number): void {
    this.delete(id)
    this.#heap.push({ id, rank, place })
    this.#rise(this.#heap.length - 1)
  }

  delete(id: string): void {
    const slot = this.#slots.get(id)
    if (slot === undefined) return
    this.#slots.delete(id)
    const last = this.#heap.pop()
    if (last === undefined || last.id === id) return
    this.#seat(last, slot)
    this.#sink(slot)
    this.#rise(slot)
  }

  /** All of them, in no particular order. */
  entries(): readonly Entry[] {
    return this.#heap.slice()
  }

  /** The ids ranked up to `rank`, at most `limit`, in no particular order. */
  upTo(rank: number, limit: number): readonly string[] {
    const found: string[] = []
    const slots = [0]
    // Everything below an entry that ranks too late ranks too late as well.
    for (let slot = slots.pop(); slot !== undefined && found.length < limit; slot = slots.pop()) {
      const entry = this.#heap[slot]
      if (entry === undefined || entry.rank > rank) continue
      found.push(entry.id)
      slots.push(2 * slot + 1, 2 * slot + 2)
    }
    return found
  }

  #seat(entry: Entry, slot: number): void {
    this.#heap[slot] = entry
    this.#slots.set(entry.id, slot)
  }

  #rise(from: number): void {
    const entry = this.#heap[from]
    if (entry === undefined) return
    let slot = from
    while (slot > 0) {
      const above = (slot - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || !before(entry, parent)) break
      this.#seat(parent, slot)
      slot = above
    }
    this.#seat(entry, slot)
  }

  #sink(from: number): void {
    const entry = this.#heap[from]
    if (entry === undefined) return
    let slot = from
    for (;;) {
      const below = this.#lesserChild(slot)
      const child = this.#heap[below]
      if (child === undefined || !before(child, entry)) break
      this.#seat(child, slot)
      slot = below
    }
    this.#seat(entry, slot)
  }

  #lesserChild(slot: number): number {
    const left = this.#heap[2 * slot + 1]
    const right = this.#heap[2 * slot + 2]
    return left !== undefined && right !== undefined && before(right, left) ? 2 * slot + 2 : 2 * slot + 1
  }
}

export function before(a: Pick<Entry, 'rank' | 'place'>, b: Pick<Entry, 'rank' | 'place'>): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.place < b.place)
}
