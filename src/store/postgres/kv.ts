/** The KV space, as it is read. */
import { text } from '../columns.ts'
import type { EncodedValue, KvRecord } from '../records.ts'
import type { Database } from './database.ts'

export const VALUES_OF = `
select kv.key, kv.value
from unnest($1::text[]) as asked (key)
cross join lateral (select * from perdure.kv where key = asked.key offset 0) kv`

export async function values(
  database: Database,
  keys: readonly string[],
): Promise<readonly (EncodedValue | undefined)[]> {
  if (keys.length === 0) return []
  const rows = await database.read((session) => session.query(VALUES_OF, [[...new Set(keys)]]))
  const found = new Map(rows.map((row) => [text(row[0]), text(row[1])]))
  return keys.map((key) => found.get(key))
}

/** Texts compare by their UTF-8 bytes, which is the order of code points. */
const FROM = `key >= greatest($1 collate "C", $2 collate "C") and ($2 is null or key <> $2)`
export const SCAN = `select key, value from perdure.kv where ${FROM} and key < $3 order by key limit $4`
export const SCAN_TO_END = `select key, value from perdure.kv where ${FROM} order by key limit $3`

export async function scan(
  database: Database,
  prefix: string,
  after: string | null,
  limit: number,
): Promise<readonly KvRecord[]> {
  const end = endOf(prefix)
  const rows = await database.read((session) =>
    end === null
      ? session.query(SCAN_TO_END, [prefix, after, limit])
      : session.query(SCAN, [prefix, after, end, limit]),
  )
  return rows.map((row) => ({ key: text(row[0]), value: text(row[1]) }))
}

const LAST_CODE_POINT = 0x10ffff

/** The first text after all those that begin with `prefix`; null: there is none. */
function endOf(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  for (let point = points.pop(); point !== undefined; point = points.pop()) {
    if (point === LAST_CODE_POINT) continue
    // Surrogates are no code points of a text.
    const next = point === 0xd7ff ? 0xe000 : point + 1
    return String.fromCodePoint(...points, next)
  }
  return null
}
