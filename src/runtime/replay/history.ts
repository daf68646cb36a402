/**
 * A run's recorded history, arranged for a replay.
 *
 * What a body does follows from the events that reach it and from their order: outcomes of durable calls, and arrivals
 * of stray calls (positions.ts). The history has both in one order, the order in which they were recorded, which is
 * the order in which every pass lets them happen. Beside it there are the wake instants of sleeps that were begun, and
 * what is known of how many durable calls had been made before each event.
 */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { CheckpointRecord, EncodedValue } from '../../store/records.ts'
import { ROOT_LINEAGE } from './scope.ts'

/** What is recorded of a durable call that has an outcome, a wake instant or an arrival. */
export interface RecordedCall {
  readonly verb: string
  readonly name: string
}

/** How many durable calls had been made before an event: exactly (`exact`), or at least. */
export interface CallsBefore {
  readonly calls: number
  readonly exact: boolean
}

type Event =
  | { readonly type: 'outcome'; readonly position: number; readonly failed: boolean; readonly value: EncodedValue }
  | { readonly type: 'arrival'; readonly call: RecordedCall; readonly lineage: number }
export type RecordedEvent = CallsBefore & Event

export interface History {
  readonly events: readonly RecordedEvent[]
  /** Exact counts are recorded of all events below this index. */
  readonly confirmed: number
  /** Lineages (scope.ts) of the calls that were made before the last entry, by position. */
  readonly lineages: readonly number[]
  /** Wake instants of sleeps that were begun, by position. */
  readonly timers: ReadonlyMap<number, EpochMs>
  /** Calls with an outcome or a wake instant. Their positions are below the number of `lineages`. */
  readonly byPosition: ReadonlyMap<number, RecordedCall>
  /** The `seq` of the next entry. */
  readonly nextSeq: number
}

export const EMPTY_HISTORY: History = {
  events: [],
  confirmed: 0,
  lineages: [],
  timers: new Map(),
  byPosition: new Map(),
  nextSeq: 0,
}

/** `entries` in order of `seq`. */
export function readHistory(entries: readonly CheckpointRecord[]): History {
  const last = entries[entries.length - 1]
  if (last === undefined) return EMPTY_HISTORY
  const noted = entries.map((entry): Noted => ({ ...entry, noted: readNotes(entry.notes) }))
  const timers = new Map<number, EpochMs>()
  const byPosition = new Map<number, RecordedCall>()
  for (const { type, position, verb, name, value } of noted) {
    if (type === 'timer') timers.set(position, Number(value))
    if (type !== 'order') byPosition.set(position, { verb, name })
  }
  return { ...readEvents(noted), timers, byPosition, nextSeq: last.seq + 1 }
}

type Noted = CheckpointRecord & { readonly noted: Notes }

function readEvents(entries: readonly Noted[]): Pick<History, 'events' | 'confirmed' | 'lineages'> {
  const counts = new Map(entries.flatMap(({ noted }) => noted.counts ?? []))
  const confirmed = entries.reduce((most, entry) => Math.max(most, entry.delivered), 0)
  const lineages = entries.flatMap(({ noted }) => noted.lineages ?? [])
  const events = entries.filter(isEvent).map((entry, index): RecordedEvent => {
    const exact = index < confirmed || entry.delivered === index
    return { ...eventOf(entry), exact, calls: exact ? (counts.get(index) ?? entry.calls) : lineages.length }
  })
  return { events, confirmed, lineages }
}

/** Timers are no events, nor is an entry that only confirms counts. */
function isEvent({ type, verb }: CheckpointRecord): boolean {
  return type === 'outcome' || (type === 'order' && verb !== '')
}

function eventOf({ type, position, verb, name, failed, value, noted }: Noted): Event {
  if (type === 'order') return { type: 'arrival', call: { verb, name }, lineage: noted.lineage ?? ROOT_LINEAGE }
  invariant(value !== null, 'an outcome has a value')
  return { type: 'outcome', position, failed, value }
}

// ── What entries note beside their columns, in `notes` ──────────────────────────────────────────────────────────

export interface Notes {
  /** Exact numbers of calls before events, by index, where no entry of theirs tells. */
  readonly counts?: readonly (readonly [index: number, calls: number])[]
  /** Of the calls made since the entry before. */
  readonly lineages?: readonly number[]
  /** Of an arrival. */
  readonly lineage?: number | undefined
}

export function writeNotes({ counts = [], lineages = [], lineage }: Notes): string | null {
  if (counts.length === 0 && lineage === undefined) {
    // Most entries have nothing or a single lineage to note.
    if (lineages.length === 0) return null
    if (lineages.length === 1) return String(lineages[0])
  }
  return JSON.stringify({
    ...(counts.length > 0 ? { counts } : {}),
    ...(lineages.length > 0 ? { lineages } : {}),
    ...(lineage === undefined ? {} : { lineage }),
  })
}

function readNotes(text: string | null): Notes {
  if (text === null) return {}
  const notes: Notes | number = JSON.parse(text)
  return typeof notes === 'number' ? { lineages: [notes] } : notes
}
