/**
 * Tells other processes that something was committed, soon after and not too often: at once when nothing was told for a
 * moment, else once for all that comes meanwhile.
 *
 * Never inside the transaction that writes: PostgreSQL takes a lock on all notifying transactions of the server until
 * they are committed, so each would wait for the others' disks. For the same reason this one doesn't wait for its own:
 * nothing is lost with it but a hint.
 */
import type { Timer } from '../../core/clock.ts'
import { realScheduler } from '../../core/scheduler.ts'
import type { Session } from './session.ts'

export const NOTIFY = `
select pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)`

export interface NotifierOptions {
  readonly read: <T>(body: (session: Session) => Promise<T>) => Promise<T>
  readonly channel: string
  /** Says who tells, so that a listener knows what comes from its own store. Nothing else is told. */
  readonly sender: string
  readonly onTrouble: (error: unknown) => void
}

const SHORTEST_GAP_MS = 5
/** A connection that was lost may be replaced by then. */
const RETRY_MS = 250
/** In a row; later ones would tell nobody anything that polling had not found by itself. */
const MOST_RETRIES = 4

export class Notifier {
  readonly #options: NotifierOptions
  #pending = false
  #sending: Promise<void> | undefined
  #timer: Timer | undefined
  #notBefore = 0
  #failures = 0

  constructor(options: NotifierOptions) {
    this.#options = options
  }

  /** To be called after the commit. */
  changed(): void {
    this.#pending = true
    this.#next()
  }

  /** Resolves when everything has been told, or could not be. */
  async close(): Promise<void> {
    this.#hurry()
    await this.#sending
    this.#hurry()
    await this.#sending
    this.#disarm()
  }

  #hurry(): void {
    this.#disarm()
    this.#notBefore = 0
    this.#next()
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #next(): void {
    if (!this.#pending || this.#sending !== undefined || this.#timer !== undefined) return
    const waitMs = this.#notBefore - realScheduler.monotonic()
    if (waitMs <= 0) {
      this.#sending = this.#send()
      return
    }
    this.#timer = realScheduler.after(waitMs, () => {
      this.#timer = undefined
      this.#next()
    })
  }

  async #send(): Promise<void> {
    const { read, channel, sender, onTrouble } = this.#options
    this.#pending = false
    this.#notBefore = realScheduler.monotonic() + SHORTEST_GAP_MS
    try {
      await read((session) => session.query(NOTIFY, [channel, sender]))
      this.#failures = 0
    } catch (error) {
      this.#failures += 1
      if (this.#failures <= MOST_RETRIES) this.#pending = true
      else this.#failures = 0
      this.#notBefore = realScheduler.monotonic() + RETRY_MS
      onTrouble(error)
    }
    this.#sending = undefined
    this.#next()
  }
}
