/** How many runs of which queue, and of which lane of it, this process has in hand. */

const NONE: ReadonlyMap<string, number> = new Map()

export class QueueLoads {
  readonly #totals = new Map<string, number>()
  readonly #lanes = new Map<string, Map<string, number>>()

  add(queue: string, lane: string): void {
    change(this.#totals, queue, 1)
    const lanes = this.#lanes.get(queue) ?? new Map<string, number>()
    this.#lanes.set(queue, lanes)
    change(lanes, lane, 1)
  }

  remove(queue: string, lane: string): void {
    change(this.#totals, queue, -1)
    const lanes = this.#lanes.get(queue)
    if (lanes !== undefined) change(lanes, lane, -1)
  }

  total(queue: string): number {
    return this.#totals.get(queue) ?? 0
  }

  /** By lane; it changes as runs come and go. */
  lanes(queue: string): ReadonlyMap<string, number> {
    return this.#lanes.get(queue) ?? NONE
  }
}

function change(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
