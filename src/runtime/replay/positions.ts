/**
 * Gives durable calls their positions, the same on every pass.
 *
 * Calls that a body makes in the turn that follows an event (an outcome delivered to it, or its start) come in the same
 * order on every pass by themselves, and take the next positions as they come. A *stray* call, one made after an await
 * that is not durable (`import()`, `crypto.subtle`), may come at any time. Live it is held until its arrival has been
 * recorded as an event of its own, and takes its position when that event's turn has come; on a replay it is held, or
 * waited for, until then.
 *
 * An await that is not durable may also take no time at all on one pass and long on another, so that a call which
 * followed an event at once now comes stray, or the other way round. The number of calls that had been made before each
 * event tells: none is let happen before as many have been made again, and when as many have been, a further one is
 * early and is held. Which of the calls that are there is the one that a position had is told by its lineage (scope.ts),
 * or, when that one doesn't come in a while, by verb and name.
 */
import { NonDeterminismError } from '../../core/errors.ts'
import { type Call, describeCall } from './call.ts'
import type { CallsBefore, History, RecordedCall, RecordedEvent } from './history.ts'

export class Positions {
  readonly #runId: string
  readonly #history: History
  /** Calls without a position yet, in the order they were made. */
  #held: Call[] = []
  readonly #open = new Map<number, Call>()
  readonly #lineages: number[] = []
  /** Recorded events that have happened again. */
  #happened = 0
  /**
   * Set when a call was recognised by its name only: the code of the body has been moved about since, and what it calls
   * is no longer of the lineages that are recorded. That is waited for once, not with each call.
   */
  #drifted = false
  readonly #arrivals: readonly { readonly index: number; readonly lineage: number }[]

  constructor(runId: string, history: History) {
    this.#runId = runId
    this.#history = history
    this.#arrivals = history.events.flatMap((event, index) =>
      event.type === 'arrival' ? [{ index, lineage: event.lineage }] : [],
    )
  }

  /** Durable calls that have taken a position. */
  get count(): number {
    return this.#lineages.length
  }

  /** Lineages of the calls that have taken a position, by position. Grows with them. */
  get lineages(): readonly number[] {
    return this.#lineages
  }

  /** Calls with a position whose outcome has not been delivered. */
  get open(): ReadonlyMap<number, Call> {
    return this.#open
  }

  /** The recorded event that is to happen next. */
  get next(): RecordedEvent | undefined {
    return this.#history.events[this.#happened]
  }

  /** True while the body has done before what it does now. */
  get replaying(): boolean {
    return this.next !== undefined || this.count < this.#history.lineages.length
  }

  /** A new call, made in the turn that follows an event (`inTurn`) or outside it. True if it has taken its position. */
  add(call: Call, inTurn: boolean): boolean {
    const taken = this.#mayTake(call, inTurn)
    if (taken) this.take(call)
    else this.#held.push(call)
    return taken
  }

  /** Gives the next position to a call. */
  take(call: Call): void {
    call.position = this.count
    this.#lineages.push(call.lineage)
    this.#open.set(call.position, call)
  }

  /** Held calls that must take a position before the next event, as far as it is clear which; they have taken it. */
  admit(lenient: boolean): readonly Call[] {
    const admitted: Call[] = []
    while (this.#held.length > 0 && this.count < this.#bound.calls) {
      const recorded = this.#history.byPosition.get(this.count)
      const call = this.#unholdRecorded(this.#history.lineages[this.count], recorded, lenient)
      if (call === undefined) break
      this.take(call)
      admitted.push(call)
    }
    return admitted
  }

  /** The held call of a recorded arrival, which is held no more. undefined while it isn't there. */
  arrived(arrival: RecordedEvent & { readonly type: 'arrival' }, lenient: boolean): Call | undefined {
    return this.#unholdRecorded(arrival.lineage, arrival.call, lenient)
  }

  /** Tells that the next recorded event has happened again. */
  happened(): void {
    this.#happened += 1
  }

  /** All held calls; they are held no more. */
  release(): readonly Call[] {
    const held = this.#held
    this.#held = []
    return held
  }

  /** The open call at a position is delivered to: it is open no more. */
  close(position: number): Call | undefined {
    const call = this.#open.get(position)
    this.#open.delete(position)
    return call
  }

  /**
   * True if the history has strays: the body awaits what is not durable, and what is missing may yet come, also after
   * a body's end.
   */
  get hasStrays(): boolean {
    return this.#arrivals.length > 0
  }

  /** A held call that the history has nowhere, made where the history has another. */
  get mismatch(): Call | undefined {
    if (!this.#history.byPosition.has(this.count)) return undefined
    return this.#held.find((call) => call.mismatched && !this.#isAhead(call))
  }

  /** True if the history has a call that has not been made. */
  get lacksCall(): boolean {
    return this.#firstUncalled() !== undefined
  }

  /** The error of a replay that will not go on: `call`, or none at all, came where the history has another. */
  divergence(): NonDeterminismError {
    const call = this.mismatch ?? this.#held[0]
    const { next } = this
    const position = this.#firstUncalled() ?? this.count
    const recorded = this.#history.byPosition.get(position) ?? (next?.type === 'arrival' ? next.call : undefined)
    return new NonDeterminismError({
      runId: this.#runId,
      position,
      recorded: recorded === undefined ? 'a call' : describeCall(recorded),
      called: call === undefined ? 'nothing' : describeCall(call),
      site: call?.site ?? 'unknown',
    })
  }

  get #bound(): CallsBefore {
    return this.next ?? { calls: this.#history.lineages.length, exact: false }
  }

  #mayTake(call: Call, inTurn: boolean): boolean {
    const { calls, exact } = this.#bound
    if (this.count >= calls) return inTurn && !exact && !this.#isAwaited(call, this.#held)
    if (call.lineage === this.#history.lineages[this.count]) return true
    const recorded = this.#history.byPosition.get(this.count)
    if (this.#drifted && inTurn && recorded !== undefined && call.resembles(recorded)) return true
    call.mismatched = inTurn
    return false
  }

  /** True if the history has an arrival to come that is this call's, and not that of one of `others`. */
  #isAwaited(call: Call, others: readonly Call[]): boolean {
    if (this.#arrivals.length === 0) return false
    const arrivals = this.#arrivals.filter(({ index, lineage }) => index >= this.#happened && lineage === call.lineage)
    if (arrivals.length === 0) return false
    return others.filter(({ lineage }) => lineage === call.lineage).length < arrivals.length
  }

  #isAhead(call: Call): boolean {
    for (const [position, recorded] of this.#history.byPosition) {
      if (position >= this.count && call.resembles(recorded)) return true
    }
    return this.#history.lineages.indexOf(call.lineage, this.count) >= 0 || this.#isAwaited(call, [])
  }

  #firstUncalled(): number | undefined {
    let first: number | undefined
    for (const position of this.#history.byPosition.keys()) {
      if (position >= this.count && (first === undefined || position < first)) first = position
    }
    return first
  }

  /** `recorded`: undefined where only the lineage is. */
  #unholdRecorded(lineage: number | undefined, recorded: RecordedCall | undefined, lenient: boolean): Call | undefined {
    const same = this.#unhold((call) => call.lineage === lineage)
    if (same !== undefined || !(lenient || this.#drifted)) return same
    const other =
      recorded === undefined
        ? this.#unhold((call, index) => !this.#isAwaited(call, this.#held.slice(0, index)))
        : this.#unhold((call) => call.resembles(recorded))
    if (other !== undefined) this.#drifted = true
    return other
  }

  #unhold(wanted: (call: Call, index: number) => boolean): Call | undefined {
    const index = this.#held.findIndex(wanted)
    return index < 0 ? undefined : this.#held.splice(index, 1)[0]
  }
}
