/** A typed emitter without names or magic: one per kind of thing that can be listened to. */

export type Listener<T> = (event: T) => void

export class Emitter<T> {
  readonly #listeners = new Set<Listener<T>>()

  /** Returns the way to stop listening. */
  on(listener: Listener<T>): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  emit(event: T): void {
    for (const listener of this.#listeners) listener(event)
  }

  get size(): number {
    return this.#listeners.size
  }
}
