/** The keys of the KV space that a batch has locked: what they hold, and what its commands make of them. */
import type { KvChange, KvOutcome } from '../../commands.ts'
import type { EncodedValue } from '../../records.ts'

export interface ChangedValue {
  readonly key: string
  /** null: the key is deleted. */
  readonly value: EncodedValue | null
  readonly hash: string | null
  /** A command was answered that the key held nothing, so it must hold nothing when it is written. */
  readonly mustBeNew: boolean
}

export class LoadedValues {
  readonly #hashes = new Map<string, string>()
  readonly #loaded = new Set<string>()
  readonly #questioned = new Set<string>()
  readonly #values = new Map<string, EncodedValue | null>()

  /** Of a key that holds something. */
  load(key: string, hash: string): void {
    this.#hashes.set(key, hash)
    this.#loaded.add(key)
  }

  change(change: KvChange): KvOutcome {
    const { key } = change
    const hash = this.#hashes.get(key) ?? null
    // Only what puts without a question may meet a value that another transaction has put meanwhile.
    if (change.type !== 'put' && !this.#values.has(key)) this.#questioned.add(key)
    switch (change.type) {
      case 'put':
        return this.#put(key, change)
      case 'putIf':
        return hash === change.expected ? this.#put(key, change) : { type: 'kv', applied: false }
      case 'delete':
        return this.#delete(key)
      case 'deleteIf':
        return hash === change.expected ? this.#delete(key) : { type: 'kv', applied: false }
    }
  }

  get changes(): readonly ChangedValue[] {
    return Array.from(this.#values, ([key, value]) => ({
      key,
      value,
      hash: this.#hashes.get(key) ?? null,
      mustBeNew: this.#questioned.has(key) && !this.#loaded.has(key),
    }))
  }

  #put(key: string, { value, hash }: { readonly value: EncodedValue; readonly hash: string }): KvOutcome {
    this.#hashes.set(key, hash)
    this.#values.set(key, value)
    return { type: 'kv', applied: true }
  }

  #delete(key: string): KvOutcome {
    const applied = this.#hashes.delete(key)
    if (applied) this.#values.set(key, null)
    return { type: 'kv', applied }
  }
}
