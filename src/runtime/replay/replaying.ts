/**
 * The first half of a pass: what is recorded happens again, in the order of the record, each event when as many calls
 * have been made as had been made before it.
 */
import { invariant } from '../../core/invariant.ts'
import type { Call } from './call.ts'
import type { Journal, LiveEvent } from './journal.ts'
import type { Patience } from './patience.ts'
import type { Positions } from './positions.ts'

export type ReplayStep =
  /** `tell` is to be called when it does happen. */
  | { readonly type: 'happens'; readonly event: LiveEvent; readonly tell: () => void }
  /** The body has ended where it did. */
  | { readonly type: 'ended' }
  | { readonly type: 'diverged' }
  /** A call that the history has is yet to come. */
  | { readonly type: 'waits' }

export interface ReplayingOptions {
  readonly positions: Positions
  readonly journal: Journal
  readonly patience: Patience
}

export class Replaying {
  readonly #positions: Positions
  readonly #journal: Journal
  readonly #patience: Patience

  constructor({ positions, journal, patience }: ReplayingOptions) {
    this.#positions = positions
    this.#journal = journal
    this.#patience = patience
  }

  step({ bodyEnded }: { readonly bodyEnded: boolean }): ReplayStep {
    const call = this.#callOfNext()
    if (call !== undefined) return this.#happensAgain(call)
    // A body that has ended calls nothing more. It may have ended a little earlier than it did, but not without a call.
    if (bodyEnded && !this.#positions.lacksCall) return { type: 'ended' }
    const inVain = !this.#positions.hasStrays && (bodyEnded || this.#positions.mismatch !== undefined)
    return { type: inVain || this.#patience.exhausted ? 'diverged' : 'waits' }
  }

  /** The call of the next recorded event, if it is there and so are the calls that come before the event. */
  #callOfNext(): Call | undefined {
    const { next } = this.#positions
    if (next === undefined || this.#positions.count < next.calls) return undefined
    return next.type === 'arrival'
      ? this.#positions.arrived(next, this.#patience.lenient)
      : this.#positions.open.get(next.position)
  }

  #happensAgain(call: Call): ReplayStep {
    const { next } = this.#positions
    invariant(next !== undefined, 'a call of the next event is one of an event')
    const tell = (): void => {
      this.#patience.renew()
      this.#positions.happened()
      this.#journal.happensAgain(next)
    }
    return { type: 'happens', event: next.type === 'arrival' ? { type: 'arrival', call } : { ...next, call }, tell }
  }
}
