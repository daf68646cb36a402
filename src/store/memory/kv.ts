/** The KV space. */
import type { KvChange, KvOutcome } from '../commands.ts'
import type { EncodedValue, KvRecord } from '../records.ts'

interface Held {
  readonly value: EncodedValue
  readonly hash: string
}

export class KeyValues {
  readonly #held = new Map<string, Held>()
  /** All keys in order of code points; null: to be sorted again. */
  #sorted: readonly string[] | null = null

  get(key: string): EncodedValue | undefined {
    return this.#held.get(key)?.value
  }

  change(change: KvChange): KvOutcome {
    const held = this.#held.get(change.key)
    switch (change.type) {
      case 'put':
        return this.#put(change.key, change)
      case 'putIf':
        return (held?.hash ?? null) === change.expected ? this.#put(change.key, change) : { type: 'kv', applied: false }
      case 'delete':
        return this.#delete(change.key)
      case 'deleteIf':
        return held?.hash === change.expected ? this.#delete(change.key) : { type: 'kv', applied: false }
    }
  }

  scan(prefix: string, after: string | null, limit: number): readonly KvRecord[] {
    this.#sorted ??= [...this.#held.keys()].sort(byCodePoints)
    const found: KvRecord[] = []
    for (const key of this.#sorted) {
      if (found.length >= limit) break
      if (!key.startsWith(prefix) || (after !== null && byCodePoints(key, after) <= 0)) continue
      const value = this.get(key)
      if (value !== undefined) found.push({ key, value })
    }
    return found
  }

  #put(key: string, { value, hash }: Held): KvOutcome {
    if (!this.#held.has(key)) this.#sorted = null
    this.#held.set(key, { value, hash })
    return { type: 'kv', applied: true }
  }

  #delete(key: string): KvOutcome {
    const applied = this.#held.delete(key)
    if (applied) this.#sorted = null
    return { type: 'kv', applied }
  }
}

/** JavaScript compares UTF-16 units, which puts what lies beyond U+FFFF before U+E000. */
export function byCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    if (a.charCodeAt(at) !== b.charCodeAt(at)) return (a.codePointAt(at) ?? 0) - (b.codePointAt(at) ?? 0)
  }
  return a.length - b.length
}
