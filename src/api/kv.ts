/** `kv`: values under keys, kept in the store beside the runs. */
import type { Codec } from '../core/codec.ts'
import type { Ids } from '../core/ids.ts'
import { kvValue } from '../core/kv-value.ts'
import { checkName, checkOwnName, checkPrefix } from '../core/names.ts'
import { checkOptions, integerOption, textOption } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import type { KvChange } from '../store/contract.ts'

export interface ScanOptions {
  /** At most this many; a page never has more than 1,000. Default 100. */
  readonly limit?: number
  /** The `cursor` of the page before; one that is none of ours gives an empty page. */
  readonly cursor?: string
}

/** In order of the keys, by code points. `cursor` is undefined on the last page. */
export interface KvPage {
  readonly entries: readonly { readonly key: string; readonly value: unknown }[]
  readonly cursor: string | undefined
}

/**
 * Values under keys, shared by everybody who uses the store. A key is 1 to 255 bytes of text without control characters
 * that does not begin with `perdure:`; a value is anything that can be stored (docs/values.md) but undefined, of at most
 * 1 MiB of text. Each call is one commit, or one look at what is committed.
 *
 * Inside a workflow, stage writes with `step.effects`: those are made once, together with the record of the step.
 *
 * @throws InvalidIdError for a key that is not allowed, SerializationError for a value that can't be stored.
 */
export interface Kv {
  /** undefined if the key has no value. Typed as the caller says; nothing checks that. */
  get<T = unknown>(key: string): Promise<T | undefined>
  put(key: string, value: unknown): Promise<void>
  /** Whether the key had a value. */
  delete(key: string): Promise<boolean>
  /**
   * Puts the value if the key has the `expected` one: an equal value, whatever the order of its keys. undefined: if it has
   * none. Gives whether it did.
   *
   * @example
   * // A counter that no other writer can overtake.
   * for (;;) {
   *   const count = await engine.kv.get<number>('orders')
   *   if (await engine.kv.compareAndPut('orders', count, (count ?? 0) + 1)) break
   * }
   */
  compareAndPut(key: string, expected: unknown, value: unknown): Promise<boolean>
  /** Deletes the key if it has the `expected` value, and gives whether it did. */
  compareAndDelete(key: string, expected: unknown): Promise<boolean>
  /** The keys that begin with `prefix`, all if it is empty. */
  scan(prefix?: string, options?: ScanOptions): Promise<KvPage>
}

const LONGEST_PAGE = 1_000

export interface KvParts {
  readonly hub: () => Promise<Hub>
  readonly codec: Codec
  readonly ids: Ids
}

export function kvOf({ hub, codec, ids }: KvParts): Kv {
  const change = async (wanted: KvChange): Promise<boolean> => {
    const { applied } = await (await hub()).submit({ type: 'kv', commandId: ids.next(), change: wanted })
    return applied
  }
  return {
    get: async <T>(key: string) => {
      checkOwnName('KV key', key)
      const [value] = await (await hub()).store.values([key])
      return value === undefined ? undefined : (codec.decode(value) as T)
    },
    put: async (key, value) => {
      checkOwnName('KV key', key)
      await change({ type: 'put', key, ...kvValue(codec, key, value) })
    },
    delete: async (key) => {
      checkOwnName('KV key', key)
      return change({ type: 'delete', key })
    },
    compareAndPut: async (key, expected, value) => {
      checkOwnName('KV key', key)
      const hash = expected === undefined ? null : kvValue(codec, key, expected).hash
      return change({ type: 'putIf', key, expected: hash, ...kvValue(codec, key, value) })
    },
    compareAndDelete: async (key, expected) => {
      checkOwnName('KV key', key)
      if (expected === undefined) return false
      return change({ type: 'deleteIf', key, expected: kvValue(codec, key, expected).hash })
    },
    scan: (prefix = '', options = {}) => scan({ hub, codec }, prefix, options),
  }
}

async function scan(
  { hub, codec }: Pick<KvParts, 'hub' | 'codec'>,
  prefix: string,
  options: ScanOptions,
): Promise<KvPage> {
  checkPrefix('prefix of KV keys', prefix)
  checkOptions('kv.scan', options, ['limit', 'cursor'])
  const limit = Math.min(integerOption('kv.scan.limit', options.limit ?? 100, 0), LONGEST_PAGE)
  const { cursor } = options
  if (cursor !== undefined && typeof cursor !== 'string') textOption('kv.scan.cursor', cursor)
  if (limit === 0 || (cursor !== undefined && !isCursor(cursor, prefix))) return { entries: [], cursor: undefined }
  const { store } = await hub()
  const found = await store.scan(prefix, cursor ?? null, limit + 1)
  const page = found.slice(0, limit)
  return {
    entries: page.map(({ key, value }) => ({ key, value: codec.decode(value) })),
    cursor: found.length > limit ? page[page.length - 1]?.key : undefined,
  }
}

/** A cursor is the last key of its page. */
function isCursor(cursor: string, prefix: string): boolean {
  try {
    checkName('cursor', cursor)
  } catch {
    return false
  }
  return cursor.startsWith(prefix)
}
