/**
 * What this process knows of the knobs that queues have for all processes: enough to tell what is worth a look or a
 * warning. It may be seconds old, so nothing is decided by it; the store reads the knobs inside the claim.
 */
import type { EpochMs } from '../core/clock.ts'
import { Emitter } from '../core/events.ts'
import { startCaveat } from '../store/caveat.ts'
import type { NewRun, StartCaveat, Store } from '../store/contract.ts'
import type { QueueRecord, Retention } from '../store/records.ts'

/** Of what other processes change, if nothing told of it. */
const FRESH_FOR_MS = 10_000

export interface QueueChanges {
  readonly records: readonly QueueRecord[]
  readonly configured: boolean
}

export class QueueView {
  readonly #store: Pick<Store, 'clock' | 'capabilities' | 'queues'>
  /** Told of queues that are others than was known, once they are known. */
  readonly changes = new Emitter<QueueChanges>()
  readonly #records = new Map<string, QueueRecord>()
  #readAt: EpochMs = 0
  #outdated = false
  #shortestRetentionMs = Number.POSITIVE_INFINITY

  constructor(store: Pick<Store, 'clock' | 'capabilities' | 'queues'>) {
    this.#store = store
  }

  /** `configured`: at run time, by a call in this process, and not by a launch or another process. */
  learn(records: readonly QueueRecord[], { configured = false } = {}): void {
    const changed = records.filter((record) => !isSame(record, this.#records.get(record.name)))
    if (changed.length === 0) return
    for (const record of changed) this.#records.set(record.name, record)
    this.#shortestRetentionMs = shortestRetentionMs(this.#records.values())
    this.changes.emit({ records: changed, configured })
  }

  /** Of all queues; infinite if they keep everything for ever. */
  get shortestRetentionMs(): number {
    return this.#shortestRetentionMs
  }

  /** Another process has changed the store in some way. */
  outdate(): void {
    this.#outdated = true
  }

  /** Reads them again, if other processes may have changed them. */
  freshen(): void {
    const { clock, capabilities } = this.#store
    const now = clock.now()
    const age = now - this.#readAt
    if (!this.#outdated && (!capabilities.shared || (age >= 0 && age < FRESH_FOR_MS))) return
    this.#readAt = now
    this.#outdated = false
    // Trouble with the store is told by those who can't do without it.
    this.#store.queues().then(
      (records) => this.learn(records),
      () => {},
    )
  }

  /** undefined: none that is known here. */
  of(name: string): QueueRecord | undefined {
    return this.#records.get(name)
  }

  /** What a start is told of where the store's own answer has no room for it. */
  caveatOf(run: NewRun): StartCaveat | null {
    return startCaveat(run, run.queue === null ? null : (this.#records.get(run.queue) ?? null))
  }
}

function isSame(a: QueueRecord, b: QueueRecord | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** Infinite if all of them keep everything for ever. */
export function shortestRetentionMs(kept: Iterable<{ readonly retention: Retention | null }>): number {
  let shortest = Number.POSITIVE_INFINITY
  for (const { retention } of kept) {
    if (retention === null) continue
    const { success, error, dead, cancelled } = retention
    for (const length of [success, error, dead, cancelled]) if (length !== null) shortest = Math.min(shortest, length)
  }
  return shortest
}
