/** The KV space. */

import { text } from '../columns.ts'
import type { KvChange, KvOutcome, KvPut } from '../commands.ts'
import type { EncodedValue, KvRecord } from '../records.ts'
import type { Database } from './database.ts'

export const VALUE_OF = 'select value from perdure_kv where key = ?'

export function findValue(database: Database, key: string): EncodedValue | undefined {
  const row = database.prepare(VALUE_OF).get(key)
  return row === undefined ? undefined : text(row[0])
}

export const PUT = `
insert into perdure_kv (key, value, hash) values (?, ?, ?)
on conflict (key) do update set value = excluded.value, hash = excluded.hash`
export const PUT_NEW = 'insert into perdure_kv (key, value, hash) values (?, ?, ?) on conflict do nothing'
export const PUT_IF = 'update perdure_kv set value = ?, hash = ? where key = ? and hash = ?'
export const DELETE = 'delete from perdure_kv where key = ?'
export const DELETE_IF = 'delete from perdure_kv where key = ? and hash = ?'

export function changeValue(database: Database, change: KvChange): KvOutcome {
  return { type: 'kv', applied: Number(applyChange(database, change).changes) > 0 }
}

function applyChange(database: Database, change: KvChange): { readonly changes: number | bigint } {
  const { key } = change
  switch (change.type) {
    case 'put':
      return putValue(database, change)
    case 'putIf':
      return change.expected === null
        ? database.prepare(PUT_NEW).run(key, change.value, change.hash)
        : database.prepare(PUT_IF).run(change.value, change.hash, key, change.expected)
    case 'delete':
      return database.prepare(DELETE).run(key)
    case 'deleteIf':
      return database.prepare(DELETE_IF).run(key, change.expected)
  }
}

export function putValue(
  database: Database,
  { key, value, hash }: Pick<KvPut, 'key' | 'value' | 'hash'>,
): { readonly changes: number | bigint } {
  return database.prepare(PUT).run(key, value, hash)
}

/** Texts compare by their UTF-8 bytes, which is the order of code points. */
export const SCAN = 'select key, value from perdure_kv where key >= max(?, ?) and key < ? order by key limit ?'
export const SCAN_TO_END = 'select key, value from perdure_kv where key >= max(?, ?) order by key limit ?'

export function scanValues(
  database: Database,
  { prefix, after, limit }: { readonly prefix: string; readonly after: string | null; readonly limit: number },
): readonly KvRecord[] {
  const from = [prefix, after ?? prefix] as const
  const end = endOf(prefix)
  const rows =
    end === null
      ? database.prepare(SCAN_TO_END).all(...from, limit + 1)
      : database.prepare(SCAN).all(...from, end, limit + 1)
  return rows
    .map((row) => ({ key: text(row[0]), value: text(row[1]) }))
    .filter(({ key }) => key !== after)
    .slice(0, limit)
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
