/** A set for each key. One that is emptied is dropped, as its key may never be used again. */
export class SetMap<Key> {
  readonly #sets = new Map<Key, Set<string>>()

  get(key: Key): ReadonlySet<string> {
    return this.#sets.get(key) ?? NONE
  }

  add(key: Key, id: string): void {
    const set = this.#sets.get(key)
    if (set === undefined) this.#sets.set(key, new Set([id]))
    else set.add(id)
  }

  delete(key: Key, id: string): void {
    const set = this.#sets.get(key)
    if (set?.delete(id) === true && set.size === 0) this.#sets.delete(key)
  }
}

const NONE: ReadonlySet<string> = new Set()
