/**
 * Group commit: while one batch is in flight the next accumulates, and it leaves a turn of the event loop after
 * the first has returned, so that those who were just answered can join it. No timer: an idle lane commits at the
 * next turn, a busy one as fast as its store.
 *
 * A batch whose outcome is unknown is sent again as it was. One that the store refuses is halved, in order, until the
 * command at fault stands alone and fails alone. One that the store calls blocked goes on by itself, apart from batches.
 */
import { PerdureError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import type { Command, CommitOutcome, Outcome, Store } from '../../store/contract.ts'
import { detached } from '../detached-context.ts'
import { commandOf, type Entry, type Part } from './entry.ts'
import { PendingCommands } from './pending.ts'
import { isTrouble, Resender, type ResenderOptions } from './resend.ts'

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
  /** Commands that began to go on by themselves, and that ended so. */
  #apart = 0

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
    return this.#submitted + this.#apart + this.#resender.activity
  }

  get lastError(): unknown {
    return this.#resender.lastError
  }

  add(part: Part): void {
    this.#submitted += 1
    this.#pending.add(part)
    if (!this.#running) this.#schedule()
  }

  /** Resolves when what was given so far for a run has an answer; rejects if it was refused, under this token. */
  settled(runId: string, token: string): Promise<void> {
    return this.#pending.settled(runId, token)
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
        this.#answer(batch, outcomes)
        const untried = batch.slice(outcomes.length)
        if (untried.length > 0 && waiting.length > 0) waiting.push(untried)
        else this.#pending.giveBack(untried)
      } catch (error) {
        waiting.push(...this.#narrow(batch, error))
      }
    }
  }

  #answer(batch: readonly Entry[], outcomes: readonly CommitOutcome[]): void {
    for (const [index, outcome] of outcomes.entries()) {
      const entry = batch[index]
      if (entry === undefined) continue
      if (outcome.type === 'blocked') void this.#follow(entry, outcome.outcome)
      else this.#pending.answer(entry, outcome)
    }
  }

  /** What to send instead of a refused batch: the next to send comes last. */
  #narrow(batch: readonly Entry[], error: unknown): readonly (readonly Entry[])[] {
    if (batch.length === 1 || isOfWholeStore(error)) {
      for (const entry of batch) this.#refuse(entry, error)
      return []
    }
    const middle = Math.ceil(batch.length / 2)
    return [batch.slice(middle), batch.slice(0, middle)]
  }

  /** Of a refused entry, what was given before the part at fault is applied. */
  #refuse(entry: Entry, error: unknown): void {
    if (entry.parts.length === 1 || isOfWholeStore(error)) this.#pending.refuse(entry, error)
    else this.#pending.split(entry)
  }

  /** A command that goes on by itself. Its keys stay taken, so what comes after it waits, and nothing else does. */
  async #follow(entry: Entry, outcome: Promise<Outcome>): Promise<void> {
    this.#apart += 1
    try {
      this.#pending.answer(entry, await outcome)
    } catch (error) {
      if (isTrouble(error)) this.#pending.giveBack([entry])
      else if (!entry.done) this.#refuse(entry, error)
    }
    this.#apart += 1
    if (!this.#running && this.#pending.ready) this.#schedule()
    this.#onSettled()
  }

  #send(commands: readonly Command[]): Promise<readonly CommitOutcome[]> {
    return this.#resender.run(async () => {
      const outcomes = await this.#store.commit(commands)
      const { length } = outcomes
      invariant(length > 0 && length <= commands.length, `a store answered ${length} of ${commands.length} commands`)
      return outcomes
    })
  }
}

function isOfWholeStore(error: unknown): boolean {
  return PerdureError.is(error) && WHOLE_STORE_CODES.has(error.code)
}
