/**
 * Gives durable calls their positions, the same on every pass.
 *
 * Positions are taken in the order of the calls. Calls that a body makes in the turn that follows a delivery come in
 * the same order on every pass by themselves. A *stray* call, one made after an await that is not durable (`import()`,
 * `crypto.subtle`), may come earlier or later than it did. Two rules make it come where it came before:
 *
 * - a delivery is waited with until as many calls have been made as had been made before it (delivery-order.ts);
 * - a call that comes when that many have been made already is *early*: it is held, and takes its position after the
 *   delivery.
 *
 * A call that is not early and is not what the history has at its position makes the replay diverge.
 */
import { NonDeterminismError } from '../../core/errors.ts'
import { type Call, describeCall } from './call.ts'
import type { History, RecordedOutcome } from './history.ts'

export class Positions {
  readonly #runId: string
  readonly #history: History
  readonly #held: Call[] = []
  readonly #open = new Map<number, Call>()
  #count = 0
  #strays = 0

  constructor(runId: string, history: History) {
    this.#runId = runId
    this.#history = history
  }

  /** Durable calls that have taken a position. */
  get count(): number {
    return this.#count
  }

  /** How many of them came outside the turn that follows a delivery. */
  get strays(): number {
    return this.#strays
  }

  get heldCalls(): number {
    return this.#held.length
  }

  /** Calls with a position whose outcome has not been delivered. */
  get open(): ReadonlyMap<number, Call> {
    return this.#open
  }

  /**
   * A new call, made in the turn that follows a delivery (`inTurn`) or outside it; `next` is the recorded outcome to
   * be delivered next, undefined when the pass is live. `diverged`: the history has another call at its position.
   */
  add(call: Call, inTurn: boolean, next: RecordedOutcome | undefined): 'taken' | 'held' | 'diverged' {
    if (this.#isEarly(inTurn, next)) {
      this.#held.push(call)
      return 'held'
    }
    const recorded = this.#history.byPosition.get(this.#count)
    if (recorded !== undefined && !call.is(recorded)) return 'diverged'
    this.#take(call, inTurn)
    return 'taken'
  }

  /**
   * Lets held calls take the positions that have come free. False if the history has a call at the next position
   * that none of the held ones is: somebody else must make it first.
   */
  admitHeld(next: RecordedOutcome | undefined): boolean {
    while (this.#held.length > 0 && (next === undefined || this.#count < next.calls)) {
      const recorded = this.#history.byPosition.get(this.#count)
      const index = recorded === undefined ? 0 : this.#held.findIndex((call) => call.is(recorded))
      const call = index < 0 ? undefined : this.#held.splice(index, 1)[0]
      if (call === undefined) return false
      this.#take(call, false)
    }
    return true
  }

  /** The error of a replay that will not go on: `call`, or none at all, came where the history has another. */
  divergence(call: Call | undefined = this.#held[0]): NonDeterminismError {
    return this.#divergence(this.#count, call)
  }

  /** The error of a body that ended while the history has more; undefined if it ended where it had ended before. */
  divergenceOfEnd(nextIndex: number): NonDeterminismError | undefined {
    const { outcomes, confirmed, byPosition } = this.#history
    const undelivered = nextIndex < confirmed ? outcomes[nextIndex]?.position : undefined
    const uncalled = [...byPosition.keys()].filter((position) => position >= this.#count)
    const position = undelivered ?? (uncalled.length > 0 ? Math.min(...uncalled) : undefined)
    return position === undefined ? undefined : this.#divergence(position, undefined)
  }

  /** The open call at a position is delivered to: it is open no more. */
  close(position: number): Call | undefined {
    const call = this.#open.get(position)
    this.#open.delete(position)
    return call
  }

  #isEarly(inTurn: boolean, next: RecordedOutcome | undefined): boolean {
    if (next === undefined) return this.#held.length > 0 && !inTurn
    if (this.#count < next.calls) return false
    return next.exact || !inTurn
  }

  #take(call: Call, inTurn: boolean): void {
    call.position = this.#count
    this.#count += 1
    if (!inTurn) this.#strays += 1
    this.#open.set(call.position, call)
  }

  #divergence(position: number, call: Call | undefined): NonDeterminismError {
    const recorded = this.#history.byPosition.get(position)
    return new NonDeterminismError({
      runId: this.#runId,
      position,
      recorded: recorded === undefined ? 'nothing' : describeCall(recorded),
      called: call === undefined ? 'nothing' : describeCall(call),
      site: call?.site ?? 'unknown',
    })
  }
}
