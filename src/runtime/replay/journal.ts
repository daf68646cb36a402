/**
 * Records the events of the live part of a pass, in the order in which they will happen, and hands them out in that
 * order, each only once it is stored.
 *
 * Each event is recorded with the number of durable calls made so far. If others that were recorded before it have yet
 * to happen, further calls may come of them; the exact number is then known only when its own turn has come, and rides
 * along with the next entry (`delivered`, `notes`). No call is begun before the numbers that its position rests on
 * are stored (`confirm`), so that no replay can give that position to another call. Each entry also
 * tells the lineages of the calls that were made since the entry before it.
 */
import type { EncodedValue, NewCheckpoint } from '../../store/records.ts'
import type { Call } from './call.ts'
import { type CallsBefore, type History, writeNotes } from './history.ts'

export type LiveEvent = { readonly call: Call } & (
  | { readonly type: 'outcome'; readonly failed: boolean; readonly value: EncodedValue }
  /** A stray call, which takes its position when its turn comes. */
  | { readonly type: 'arrival' }
)

type QueuedEvent = LiveEvent & { exact: boolean; stored: boolean }

/** Stores entries under the claim; resolves to false when the claim is lost. */
export type Store = (entries: readonly NewCheckpoint[]) => Promise<boolean>

type Entry = Omit<NewCheckpoint, 'seq' | 'calls' | 'delivered' | 'notes'> & { readonly lineage?: number }

const NO_CALL = { position: -1, verb: '', name: '', failed: false, value: null, attempts: 1 } as const

export class Journal {
  readonly #store: Store
  /** Lineages of the calls made so far, by position. */
  readonly #made: readonly number[]
  readonly #queue: QueuedEvent[] = []
  /** Exact numbers of calls before events, which no entry tells yet. */
  #counts: [index: number, calls: number][] = []
  #seq: number
  /** Of so many calls the lineages are told. */
  #told: number
  /** Events that have happened in this pass. */
  #happened = 0
  /** Of so many the exact numbers are stored. */
  #confirmed: number

  constructor(history: History, made: readonly number[], store: Store) {
    this.#store = store
    this.#made = made
    this.#told = history.lineages.length
    this.#seq = history.nextSeq
    this.#confirmed = history.confirmed
  }

  /** Events recorded that have yet to happen, stored or not. */
  get waiting(): number {
    return this.#queue.length
  }

  /** The event that is to happen next, if it is stored. */
  get head(): LiveEvent | undefined {
    const head = this.#queue[0]
    return head?.stored === true ? head : undefined
  }

  /** Resolves, when it is stored, to true; to false when the claim is lost. */
  outcome(call: Call, failed: boolean, value: EncodedValue, attempts: number): Promise<boolean> {
    const { position, verb, name } = call
    const event: QueuedEvent = { type: 'outcome', call, failed, value, exact: this.#nextInLine, stored: false }
    return this.#event(event, { type: 'outcome', position, verb, name, failed, value, attempts })
  }

  arrival(call: Call): Promise<boolean> {
    const { verb, name, lineage } = call
    const event: QueuedEvent = { type: 'arrival', call, exact: this.#nextInLine, stored: false }
    return this.#event(event, { ...NO_CALL, type: 'order', verb, name, lineage })
  }

  timer({ position, verb, name }: Call, value: EncodedValue): Promise<boolean> {
    return this.#append({ type: 'timer', position, verb, name, failed: false, value, attempts: 1 })
  }

  /** Tells that the head happens now. */
  happens(): void {
    const head = this.#queue.shift()
    if (head !== undefined) this.happensAgain(head)
  }

  /** Tells that the next recorded event happens again now. */
  happensAgain({ exact }: Pick<CallsBefore, 'exact'>): void {
    if (exact) this.#confirmed = Math.max(this.#confirmed, this.#happened + 1)
    else this.#counts.push([this.#happened, this.#made.length])
    this.#happened += 1
  }

  /** False while a call that is begun now could be given another position by a replay. */
  get confirmed(): boolean {
    return this.#confirmed >= this.#happened && this.#queue[0]?.exact !== false
  }

  /** Stores the exact numbers up to the head. */
  confirm(): Promise<boolean> {
    const head = this.#queue[0]
    const headToo = head?.exact === false
    if (headToo) {
      head.exact = true
      this.#counts.push([this.#happened, this.#made.length])
    }
    return this.#append({ ...NO_CALL, type: 'order' }, this.#happened + (headToo ? 1 : 0))
  }

  /** Entries that a settlement should carry so that no exact number is lost. */
  unconfirmed(): readonly NewCheckpoint[] {
    return this.confirmed ? [] : [this.#entry({ ...NO_CALL, type: 'order' }, this.#happened)]
  }

  /** Nothing is left to happen before an event that is recorded now, so no call can come in between. */
  get #nextInLine(): boolean {
    return this.#queue.length === 0
  }

  #event(event: QueuedEvent, entry: Entry): Promise<boolean> {
    this.#queue.push(event)
    return this.#append(entry, this.#happened, event)
  }

  #append(entry: Entry, delivered: number = this.#happened, event?: QueuedEvent): Promise<boolean> {
    return this.#store([this.#entry(entry, delivered)]).then((stored) => {
      if (stored) this.#confirmed = Math.max(this.#confirmed, delivered)
      if (event !== undefined) event.stored = stored
      return stored
    })
  }

  /** Written out, as each step makes one: spreading costs several times as much. */
  #entry(entry: Entry, delivered: number): NewCheckpoint {
    const { type, position, verb, name, failed, value, attempts, lineage } = entry
    const calls = this.#made.length
    const notes = writeNotes({ counts: this.#counts, lineages: this.#made.slice(this.#told), lineage })
    this.#counts = []
    this.#told = Math.max(this.#told, calls)
    return { seq: this.#seq++, type, position, verb, name, failed, value, calls, delivered, notes, attempts }
  }
}
