/**
 * How long a replay waits for calls that come after an await that is not durable: 5 s of real time since the last event,
 * in spans, so that a loop that is blocked for as long uses up one of them, and not what the await would have needed.
 */
import type { Scheduler } from '../../core/scheduler.ts'

const SPAN_MS = 250
const SPANS = 20
/** So many of them for the very call of the record; after that, one of the same name from another chain will do. */
const LINEAGE_SPANS = 4

export class Patience {
  readonly #scheduler: Scheduler
  #waited = 0

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler
  }

  renew(): void {
    this.#waited = 0
  }

  get lenient(): boolean {
    return this.#waited >= LINEAGE_SPANS
  }

  get exhausted(): boolean {
    return this.#waited >= SPANS
  }

  /** A span begins; `onOver` is called when it has passed. Returns the way to leave it out. */
  span(onOver: () => void): () => void {
    const timer = this.#scheduler.after(SPAN_MS, () => {
      this.#waited += 1
      onOver()
    })
    return () => timer.cancel()
  }
}
