/**
 * Records the events of the live part of a pass, in the order in which they will happen, and hands them out in that
 * order, each only once it is stored.
 *
 * Each event is recorded with the number of durable calls made so far. If others that were recorded before it have yet
 * to happen, further calls may come of them; the exact number is then known only when its own turn has come, and rides
 * along with the next entry (`delivered`, `notes`). No call is begun before the numbers that its position rests on
 * are stored (`confirm`), so that no replay can give that position to another call. Each entry also
 * tells the lineages of the calls that were made since the entry before it.
 *
 * Entries are numbered without gaps when they are sent. A command that may be refused, and then records nothing, holds
 * the journal until it is answered: what comes meanwhile is recorded after it.
 */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { Action, Effect, NewCheckpoint, PerformOutcome, WaitOutcome } from '../../store/commands.ts'
import type { TransactOutcome } from '../../store/contract.ts'
import type { EncodedValue } from '../../store/records.ts'
import type { Call } from './call.ts'
import { type CallsBefore, type History, writeNotes } from './history.ts'
import type { Port } from './port.ts'

export type LiveEvent = { readonly call: Call } & (
  | { readonly type: 'outcome'; readonly failed: boolean; readonly value: EncodedValue }
  /** A stray call, which takes its position when its turn comes. */
  | { readonly type: 'arrival' }
)

type QueuedEvent = LiveEvent & { exact: boolean; stored: boolean }
/** The value comes from the store. */
type PerformedEvent = QueuedEvent & { readonly type: 'outcome'; value: EncodedValue }

/** What is recorded of a call that has come to its end. */
export interface Outcome {
  readonly failed: boolean
  readonly value: EncodedValue
  /** 1 if unset. */
  readonly attempts?: number
  /** Applied by the store together with the entry. */
  readonly effects?: readonly Effect[]
}

type Entry = Omit<NewCheckpoint, 'seq' | 'calls' | 'delivered' | 'notes'> & { readonly lineage?: number }

const NO_CALL = { position: -1, verb: '', name: '', failed: false, value: null, attempts: 1 } as const

export class Journal {
  readonly #port: Port
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
  #held = false
  /** What is to be recorded when the journal is held no more. */
  readonly #line: (() => void)[] = []

  constructor(history: History, made: readonly number[], port: Port) {
    this.#port = port
    this.#made = made
    this.#told = history.lineages.length
    this.#seq = history.nextSeq
    this.#confirmed = history.confirmed
  }

  /** False while events have yet to be recorded or to happen. */
  get idle(): boolean {
    return this.#queue.length === 0 && !this.#held
  }

  /** True while it is not known how the next entry will be numbered: nothing can be recorded now. */
  get held(): boolean {
    return this.#held
  }

  /** Calls back when the journal is held no more; those who wait get their turns in order. */
  whenFree(record: () => void): void {
    this.#line.push(record)
  }

  /** The event that is to happen next, if it is stored. */
  get head(): LiveEvent | undefined {
    const head = this.#queue[0]
    return head?.stored === true ? head : undefined
  }

  /** Resolves, when it is stored, to true; to false when the claim is lost. */
  outcome(call: Call, { failed, value, attempts = 1, effects }: Outcome): Promise<boolean> {
    const { position, verb, name } = call
    const event: QueuedEvent = { type: 'outcome', call, failed, value, exact: this.#nextInLine, stored: false }
    const entry: Entry = { type: 'outcome', position, verb, name, failed, value, attempts }
    return this.#event(event, effects === undefined ? entry : { ...entry, effects })
  }

  arrival(call: Call): Promise<boolean> {
    const { verb, name, lineage } = call
    const event: QueuedEvent = { type: 'arrival', call, exact: this.#nextInLine, stored: false }
    return this.#event(event, { ...NO_CALL, type: 'order', verb, name, lineage })
  }

  timer(call: Call, wakeAt: EpochMs): Promise<boolean> {
    return this.#append(timerOf(call, wakeAt))
  }

  /** Has the store do what a call asks for, and record what comes of it as the call's outcome, unless it refuses. */
  perform(call: Call, action: Action): Promise<PerformOutcome> {
    return this.#performed(call, 1, (checkpoint) => this.#port.perform(checkpoint, action))
  }

  /** Has a transaction of the user's recorded as the call's outcome, if it is committed; holds the journal until then. */
  transact<O extends TransactOutcome | undefined>(
    call: Call,
    attempt: number,
    send: (checkpoint: NewCheckpoint) => Promise<O>,
  ): Promise<O> {
    return this.#performed(call, attempt, send)
  }

  async #performed<O extends PerformOutcome | TransactOutcome | undefined>(
    call: Call,
    attempts: number,
    send: (checkpoint: NewCheckpoint) => Promise<O>,
  ): Promise<O> {
    const { position, verb, name } = call
    const event: PerformedEvent = {
      ...{ type: 'outcome', call, failed: false, value: '' },
      ...{ exact: this.#nextInLine, stored: false },
    }
    this.#queue.push(event)
    const entry: Entry = { type: 'outcome', position, verb, name, failed: false, value: null, attempts }
    const outcome = await this.#tentatively(entry, send, isPerformed)
    if (outcome?.type === 'performed') {
      event.value = outcome.value
      event.stored = true
    } else {
      // Nothing has been recorded behind it.
      this.#queue.pop()
    }
    this.#free()
    return outcome
  }

  /** Opens the wait of a call for a signal, and records until when it waits; `wakeAt`: null if that needs no record. */
  async wait(call: Call, key: string, wakeAt: EpochMs | null): Promise<WaitOutcome> {
    const { position } = call
    if (wakeAt === null) return this.#port.wait(position, key, [])
    const send = (timer: NewCheckpoint): Promise<WaitOutcome> => this.#port.wait(position, key, [timer])
    const outcome = await this.#tentatively(timerOf(call, wakeAt), send, isOpened)
    this.#free()
    return outcome
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
    return this.#port.store([this.#entry(entry, delivered)]).then((stored) => {
      if (stored) this.#confirmed = Math.max(this.#confirmed, delivered)
      if (event !== undefined) event.stored = stored
      return stored
    })
  }

  /** Sends an entry that is recorded only if the answer says so. Holds the journal: `#free` follows. */
  async #tentatively<O>(
    entry: Entry,
    send: (checkpoint: NewCheckpoint) => Promise<O>,
    isRecorded: (outcome: O) => boolean,
  ): Promise<O> {
    const delivered = this.#happened
    const [counts, told] = [this.#counts, this.#told]
    const checkpoint = this.#entry(entry, delivered)
    this.#held = true
    const outcome = await send(checkpoint)
    if (isRecorded(outcome)) this.#confirmed = Math.max(this.#confirmed, delivered)
    else {
      // The next entry tells what this one would have told.
      this.#seq = checkpoint.seq
      this.#counts = [...counts, ...this.#counts]
      this.#told = told
    }
    return outcome
  }

  #free(): void {
    this.#held = false
    while (!this.#held) {
      const record = this.#line.shift()
      if (record === undefined) return
      record()
    }
  }

  /** Written out, as each step makes one: spreading costs several times as much. */
  #entry(entry: Entry, delivered: number): NewCheckpoint {
    invariant(!this.#held, 'nothing is recorded while it is not known how it is to be numbered')
    const { type, position, verb, name, failed, value, attempts, lineage, effects } = entry
    const calls = this.#made.length
    const notes = writeNotes({ counts: this.#counts, lineages: this.#made.slice(this.#told), lineage })
    this.#counts = []
    this.#told = Math.max(this.#told, calls)
    const seq = this.#seq++
    if (effects === undefined) {
      return { seq, type, position, verb, name, failed, value, calls, delivered, notes, attempts }
    }
    return { seq, type, position, verb, name, failed, value, calls, delivered, notes, attempts, effects }
  }
}

function timerOf({ position, verb, name }: Call, wakeAt: EpochMs): Entry {
  return { type: 'timer', position, verb, name, failed: false, value: String(wakeAt), attempts: 1 }
}

function isPerformed(outcome: PerformOutcome | TransactOutcome | undefined): boolean {
  return outcome?.type === 'performed'
}

function isOpened({ type }: WaitOutcome): boolean {
  return type !== 'taken' && type !== 'claimLost'
}
