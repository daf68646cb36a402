/**
 * Records what happens in the live part of a pass, in the order it happened, and hands out recorded outcomes for
 * delivery in that same order, each only once it is stored.
 *
 * Each outcome is recorded with the number of durable calls made so far. Others may be delivered, and further calls
 * made, before its own turn comes; the exact number is then known only at its delivery and rides along with the next
 * entry (`delivered`, `counts`). While a body only awaits durable calls, that is enough: the calls in between follow
 * from the deliveries. A stray call in between doesn't, so then the exact number is stored before the delivery.
 */
import { invariant } from '../../core/invariant.ts'
import type { EncodedValue, NewCheckpoint } from '../../store/records.ts'
import type { Call } from './call.ts'
import { type History, writeCounts } from './history.ts'

export interface LiveOutcome {
  readonly call: Call
  readonly failed: boolean
  readonly value: EncodedValue
  /** Durable calls made when it was recorded, or confirmed. */
  calls: number
  /** How many of them were stray. */
  strays: number
  stored: boolean
}

/** Stores entries under the claim; resolves to false when the claim is lost. */
export type Store = (entries: readonly NewCheckpoint[]) => Promise<boolean>

const NO_CALL = { position: -1, verb: '', name: '', failed: false, value: null, attempts: 1 } as const

export class Journal {
  readonly #store: Store
  readonly #queue: LiveOutcome[] = []
  /** Exact counts of delivered outcomes that no entry tells yet. */
  #counts = new Map<number, number>()
  #seq: number
  #delivered: number

  constructor(history: History, store: Store) {
    this.#store = store
    this.#seq = history.nextSeq
    this.#delivered = history.outcomes.length
  }

  /** Outcomes recorded and not yet delivered, stored or not. */
  get waiting(): number {
    return this.#queue.length
  }

  /** The outcome to be delivered next, if it is stored. */
  get head(): LiveOutcome | undefined {
    const head = this.#queue[0]
    return head?.stored === true ? head : undefined
  }

  /** Resolves, when it is stored, to true; to false when the claim is lost. */
  async record(outcome: Omit<LiveOutcome, 'stored'>, attempts: number): Promise<boolean> {
    const live: LiveOutcome = { ...outcome, stored: false }
    this.#queue.push(live)
    const { call, failed, value, calls } = outcome
    const { position, verb, name } = call
    live.stored = await this.#append({ type: 'outcome', position, verb, name, failed, value, attempts, calls })
    return live.stored
  }

  timer(call: Call, value: EncodedValue, calls: number): Promise<boolean> {
    const { position, verb, name } = call
    return this.#append({ type: 'timer', position, verb, name, failed: false, value, attempts: 1, calls })
  }

  /** Tells that the head is delivered now, after exactly `calls` durable calls. */
  delivered(calls: number): void {
    const head = this.#queue.shift()
    if (head !== undefined && head.calls !== calls) this.#counts.set(this.#delivered, calls)
    this.#delivered += 1
  }

  /** Stores that the head will be delivered after exactly `calls` durable calls, `strays` of them stray. */
  confirmHead(calls: number, strays: number): Promise<boolean> {
    const head = this.#queue[0]
    invariant(head !== undefined, 'there is a head to confirm')
    head.calls = calls
    head.strays = strays
    this.#counts.set(this.#delivered, calls)
    return this.#append({ ...NO_CALL, type: 'order', calls }, this.#delivered + 1)
  }

  /** Entries that a settlement should carry so that no exact count is lost. */
  unconfirmed(calls: number): readonly NewCheckpoint[] {
    return this.#counts.size === 0 ? [] : [this.#entry({ ...NO_CALL, type: 'order', calls }, this.#delivered)]
  }

  #append(
    entry: Omit<NewCheckpoint, 'seq' | 'delivered' | 'counts'>,
    delivered: number = this.#delivered,
  ): Promise<boolean> {
    return this.#store([this.#entry(entry, delivered)])
  }

  #entry(entry: Omit<NewCheckpoint, 'seq' | 'delivered' | 'counts'>, delivered: number): NewCheckpoint {
    const counts = writeCounts(this.#counts)
    this.#counts = new Map()
    return { ...entry, seq: this.#seq++, delivered, counts }
  }
}
