/**
 * A run's recorded history, arranged for a replay: outcomes in the order they were delivered, the wake instants of
 * sleeps that were begun, and what is known of how many durable calls had been made before each delivery.
 */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { CheckpointRecord, EncodedValue } from '../../store/records.ts'

/** What is recorded of a durable call at its position: enough to tell whether a replay asks for the same. */
export interface RecordedCall {
  readonly position: number
  readonly verb: string
  readonly name: string
}

export interface RecordedOutcome extends RecordedCall {
  readonly failed: boolean
  readonly value: EncodedValue
  /** Durable calls made before its delivery: exactly (`exact`), or at least. */
  readonly calls: number
  readonly exact: boolean
}

export interface History {
  readonly outcomes: readonly RecordedOutcome[]
  /** Outcomes below this index are known to have been delivered, or to have been about to be. */
  readonly confirmed: number
  /** Wake instants of sleeps that were begun, by position. */
  readonly timers: ReadonlyMap<number, EpochMs>
  readonly byPosition: ReadonlyMap<number, RecordedCall>
  /** The `seq` of the next entry. */
  readonly nextSeq: number
}

export const EMPTY_HISTORY: History = {
  outcomes: [],
  confirmed: 0,
  timers: new Map(),
  byPosition: new Map(),
  nextSeq: 0,
}

/** `entries` in order of `seq`. */
export function readHistory(entries: readonly CheckpointRecord[]): History {
  if (entries.length === 0) return EMPTY_HISTORY
  const counts = new Map<number, number>()
  const timers = new Map<number, EpochMs>()
  const byPosition = new Map<number, RecordedCall>()
  let confirmed = 0
  for (const entry of entries) {
    confirmed = Math.max(confirmed, entry.delivered)
    for (const [index, calls] of readCounts(entry.counts)) counts.set(index, calls)
    if (entry.type === 'timer') timers.set(entry.position, Number(entry.value))
    if (entry.type !== 'order') byPosition.set(entry.position, entry)
  }
  const outcomes = entries
    .filter((entry) => entry.type === 'outcome')
    .map((entry, index): RecordedOutcome => {
      invariant(entry.value !== null, 'an outcome has a value')
      const { position, verb, name, failed, value } = entry
      return { position, verb, name, failed, value, calls: counts.get(index) ?? entry.calls, exact: index < confirmed }
    })
  const last = entries[entries.length - 1]
  invariant(last !== undefined, 'entries are not empty')
  return { outcomes, confirmed, timers, byPosition, nextSeq: last.seq + 1 }
}

/** Text of the `counts` column: exact counts of calls by index of outcome. */
export function writeCounts(counts: ReadonlyMap<number, number>): string | null {
  return counts.size === 0 ? null : JSON.stringify([...counts])
}

function readCounts(text: string | null): readonly (readonly [number, number])[] {
  return text === null ? [] : JSON.parse(text)
}
