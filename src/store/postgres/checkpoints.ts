/** Entries of histories, as they are read. */
import { flag, number, text, textOrNull, word } from '../columns.ts'
import type { CheckpointRecord } from '../records.ts'
import type { Row } from './session.ts'

/** In the order that `toCheckpoint` reads. */
export const ENTRY_COLUMNS = `c.seq, c.type, c.position, c.verb, c.name, c.failed, c.value, c.calls, c.delivered, c.notes,
  c.recorded_at, c.attempts`

const toType = word(['outcome', 'timer', 'order'] as const)

/** `at`: where its columns begin in the row. */
export function toCheckpoint(row: Row, at = 0): CheckpointRecord {
  return {
    seq: number(row[at]),
    type: toType(row[at + 1]),
    position: number(row[at + 2]),
    verb: text(row[at + 3]),
    name: text(row[at + 4]),
    failed: flag(row[at + 5]),
    value: textOrNull(row[at + 6]),
    calls: number(row[at + 7]),
    delivered: number(row[at + 8]),
    notes: textOrNull(row[at + 9]),
    recordedAt: number(row[at + 10]),
    attempts: number(row[at + 11]),
  }
}
