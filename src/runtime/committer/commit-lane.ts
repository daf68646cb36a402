/**
 * Group commit: while one batch is in flight the next accumulates, and it leaves a turn of the event loop after
 * the first has returned, so that those who were just answered can join it. No timer: an idle lane commits at the
 * next turn, a busy one as fast as its store.
 *
 * A batch whose outcome is unknown is sent again as it was. One that the store refuses is halved, in order, until the
 * command at fault stands alone and fails alone.
 */
import { PerdureError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import type { Command, Outcome, Store } from '../../store/contract.ts'
import { detached } from '../detached-context.ts'
import { commandOf, type Entry, type Part } from './entry.ts'
import { PendingCommands } from './pending.ts'
import { Resender, type ResenderOptions } from './resend.ts'

const BOUNDS = { maxRows: 1_000, maxTextLength: 4 * 1024 * 1024 }

/** Errors about the store as a whole: no smaller batch would fare better. */
const WHOLE_STORE_CODES: ReadonlySet<string> = new Set([
  'STORE_CORRUPT',
  'STORE_VERSION',
  'STORE_CLOCK',
  'STORE_CLOSED',
])

export class CommitLane {
  readonly #store: Pick<Store, 'commit'>
  readonly #options: ResenderOptions
  readonly #onSettled: () => void
  readonly #resender: Resender
  readonly #pending = new PendingCommands(BOUNDS)
  /** A round is under way, or will begin at the next turn. */
  #running = false
  #abandoned = false
  #submitted = 0

  constructor(store: Pick<Store, 'commit'>, options: ResenderOptions, onSettled: () => void) {
    this.#store = store
    this.#options = options
    this.#onSettled = onSettled
    this.#resender = new Resender(options)
  }

  get pending(): number {
    return this.#pending.count
  }

  get activity(): number {
    return this.#submitted + this.#resender.activity
  }

  get lastError(): unknown {
    return this.#resender.lastError
  }

  add(part: Part): void {
    this.#submitted += 1
    this.#pending.add(part)
    if (!this.#running) this.#schedule()
  }

  /** Rejects what waits and what is in flight; a late answer of the store is ignored. */
  abandon(error: unknown): void {
    this.#abandoned = true
    this.#resender.abandon()
    this.#pending.refuseAll(error)
    this.#onSettled()
  }

  #schedule(): void {
    this.#running = true
    detached(() => this.#options.scheduler.onTurn(() => void this.#round()))
  }

  async #round(): Promise<void> {
    const batch = this.#pending.take()
    if (batch.length > 0) await this.#deliver(batch)
    this.#running = false
    if (this.#pending.ready) this.#schedule()
    this.#onSettled()
  }

  async #deliver(whole: readonly Entry[]): Promise<void> {
    const waiting = [whole]
    for (let batch = waiting.pop(); batch !== undefined && !this.#abandoned; batch = waiting.pop()) {
      try {
        const outcomes = await this.#send(batch.map(commandOf))
        outcomes.forEach((outcome, index) => {
          const entry = batch?.[index]
          if (entry !== undefined) this.#pending.answer(entry, outcome)
        })
        const untried = batch.slice(outcomes.length)
        if (untried.length > 0 && waiting.length > 0) waiting.push(untried)
        else this.#pending.giveBack(untried)
      } catch (error) {
        waiting.push(...(await this.#narrow(batch, error)))
      }
    }
  }

  /** What to send instead of a refused batch: the next to send comes last. */
  async #narrow(batch: readonly Entry[], error: unknown): Promise<readonly (readonly Entry[])[]> {
    if (PerdureError.is(error) && WHOLE_STORE_CODES.has(error.code)) {
      for (const entry of batch) this.#pending.refuse(entry, error)
      return []
    }
    const [entry] = batch
    if (batch.length === 1 && entry !== undefined) {
      await this.#deliverParts(entry, error)
      return []
    }
    const middle = Math.ceil(batch.length / 2)
    return [batch.slice(middle), batch.slice(0, middle)]
  }

  /** Of a refused entry, applies what was given before the part at fault. */
  async #deliverParts(entry: Entry, refusal: unknown): Promise<void> {
    if (entry.parts.length === 1) return this.#pending.refuse(entry, refusal)
    try {
      let last: Outcome | undefined
      for (const part of entry.parts) {
        const [outcome] = await this.#send([part.command])
        if (outcome === undefined) return
        part.resolve(outcome)
        last = outcome
      }
      if (last !== undefined) this.#pending.answer(entry, last)
    } catch (error) {
      this.#pending.refuse(entry, error)
    }
  }

  #send(commands: readonly Command[]): Promise<readonly Outcome[]> {
    return this.#resender.run(async () => {
      const outcomes = await this.#store.commit(commands)
      const { length } = outcomes
      invariant(length > 0 && length <= commands.length, `a store answered ${length} of ${commands.length} commands`)
      return outcomes
    })
  }
}
