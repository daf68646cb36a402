/**
 * How calls of a pass get their outcomes recorded: each at a moment when it can be told how many calls it comes after,
 * and under the claim. A record that could not be made ends the pass: nothing after it may look as if it had been.
 */
import type { EpochMs } from '../../core/clock.ts'
import { type ErrorCode, PerdureError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { Action, NewCheckpoint, PerformOutcome, WaitOutcome } from '../../store/commands.ts'
import type { TransactOutcome } from '../../store/contract.ts'
import type { Call } from './call.ts'
import type { Journal, Outcome } from './journal.ts'
import type { Port, Transaction } from './port.ts'
import type { Turns } from './turns.ts'

/** What the pass is told, and asked. */
export interface RecordingHost {
  readonly scheduler: Scheduler
  /** Nothing that ends now is recorded. */
  readonly over: boolean
  /** Something has been recorded, or answered. */
  poke(): void
  claimLost(): void
  fail(error: unknown): void
  /** The outcome of the call has come too late. */
  discard(call: Call): void
}

export interface RecordingOptions {
  readonly journal: Journal
  readonly turns: Turns
  readonly port: Port
  readonly host: RecordingHost
}

/** Of real time, between two looks at a store in trouble. */
const PAUSE_IN_TROUBLE_MS = 1_000

export class Recording {
  readonly #journal: Journal
  readonly #turns: Turns
  readonly #port: Port
  readonly #host: RecordingHost
  #asked = 0

  constructor({ journal, turns, port, host }: RecordingOptions) {
    this.#journal = journal
    this.#turns = turns
    this.#port = port
    this.#host = host
  }

  /** True while the store has yet to answer a question that a call waits for. */
  get asking(): boolean {
    return this.#asked > 0
  }

  /** Records a call's outcome; it is delivered when its turn comes. Never rejects. */
  outcome(call: Call, outcome: Outcome): void {
    this.#inTheClear(() => {
      if (this.#host.over) this.#host.discard(call)
      else void this.keepingClaim(this.#journal.outcome(call, outcome))
    })
  }

  /** Records until when a call waits. */
  wakeAt(call: Call, instant: EpochMs): void {
    this.#inTheClear(() => {
      if (!this.#host.over) void this.keepingClaim(this.#journal.timer(call, instant))
    })
  }

  /** Has the store do what a call asks for and record its outcome. undefined if the pass has ended meanwhile. */
  perform(call: Call, action: Action): Promise<PerformOutcome | undefined> {
    return this.#answer(() => this.#journal.perform(call, action))
  }

  /**
   * Runs a transaction of the user's, which records the outcome of its call when it commits; waits while the store is in
   * trouble. It takes as long as its body does: nothing that the call would ask the store. undefined if the pass has ended.
   */
  transact(call: Call, attempt: number, transaction: Omit<Transaction, 'entry'>): Promise<TransactOutcome | undefined> {
    const { transactions } = this.#port
    invariant(transactions !== undefined, 'only stores with SQL are asked for a transaction')
    const send = (entry: NewCheckpoint): Promise<TransactOutcome | undefined> =>
      this.patiently(() => transactions.transact({ ...transaction, entry }))
    return this.#answered(() => this.#journal.transact(call, attempt, send))
  }

  /** Opens a call's wait for a signal; `wakeAt`: until when it waits, if that is to be recorded. */
  openWait(call: Call, key: string, wakeAt: EpochMs | null): Promise<WaitOutcome | undefined> {
    return this.#answer(() => this.#journal.wait(call, key, wakeAt))
  }

  /** Closes a call's wait for a signal, as its time is over, unless a signal came first. */
  closeWait(call: Call): Promise<WaitOutcome | undefined> {
    return this.#answer(() => this.#port.expire(call.position))
  }

  /** Asks the store something; the pass moves meanwhile. undefined if the pass has ended. */
  async ask<T>(question: () => Promise<T>): Promise<T | undefined> {
    try {
      return await this.patiently(() => this.#counted(question))
    } catch (error) {
      this.#host.fail(error)
      return undefined
    }
  }

  /**
   * Does what may meet the store in trouble, again and again while that lasts: it is no outcome of a call. undefined if
   * the pass has ended. Rejects with everything else.
   */
  async patiently<T>(work: () => Promise<T>): Promise<T | undefined> {
    while (!this.#host.over) {
      try {
        return await work()
      } catch (error) {
        if (!isTrouble(error)) throw error
        if (!error.retryable) {
          this.#host.fail(error)
          return undefined
        }
        await new Promise<void>((resolve) => {
          this.#host.scheduler.after(PAUSE_IN_TROUBLE_MS, resolve, { background: true })
        })
      }
    }
    return undefined
  }

  /** Resolves when a record is stored, or the end of the pass told. Never rejects. */
  keepingClaim(stored: Promise<boolean>): Promise<void> {
    return stored.then(
      (claimed) => (claimed ? this.#host.poke() : this.#host.claimLost()),
      (error: unknown) => this.#host.fail(error),
    )
  }

  #answer<O extends { readonly type: string }>(send: () => Promise<O>): Promise<O | undefined> {
    return this.#counted(() => this.#answered(send))
  }

  async #answered<O extends { readonly type: string } | undefined>(send: () => Promise<O>): Promise<O | undefined> {
    const answered = new Promise<O | undefined>((resolve) => {
      this.#inTheClear(() => resolve(this.#host.over ? undefined : send()))
    })
    try {
      const answer = await answered
      if (answer?.type === 'claimLost') this.#host.claimLost()
      return this.#host.over ? undefined : answer
    } catch (error) {
      this.#host.fail(error)
      return undefined
    } finally {
      this.#host.poke()
    }
  }

  async #counted<T>(question: () => Promise<T>): Promise<T> {
    this.#asked += 1
    try {
      return await question()
    } finally {
      this.#asked -= 1
      this.#host.poke()
    }
  }

  /** What is recorded while the body moves could not tell how many calls it comes after. */
  #inTheClear(record: () => void): void {
    if (this.#turns.moving) this.#turns.afterwards(() => this.#inTheClear(record))
    else if (this.#journal.held) this.#journal.whenFree(() => this.#inTheClear(record))
    else record()
  }
}

const TROUBLE: readonly ErrorCode[] = [
  'STORE_UNAVAILABLE',
  'STORE_CLOSED',
  'STORE_CORRUPT',
  'STORE_VERSION',
  'STORE_CLOCK',
  'ENGINE_SHUTDOWN',
]

/** Of the store or the engine, not of what was asked. */
function isTrouble(error: unknown): error is PerdureError {
  return PerdureError.is(error) && TROUBLE.includes(error.code)
}
