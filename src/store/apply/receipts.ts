/** Answers to commands that leave nothing else to recognise them by, for as long as a resend may come. */
import type { EpochMs } from '../../core/clock.ts'

const KEPT_MS = 24 * 60 * 60 * 1_000

export class Receipts<Answer extends object> {
  readonly #given = new Map<string, { readonly answer: Answer; readonly at: EpochMs }>()

  /** The answer that the command was given before, or else that of `act`, which is kept. */
  once(commandId: string, now: EpochMs, act: () => Answer): Answer {
    const given = this.#given.get(commandId)
    if (given !== undefined) return given.answer
    const answer = Object.freeze(act())
    this.#given.set(commandId, { answer, at: now })
    return answer
  }

  /** Removes those that no resend can ask for any more. */
  sweep(now: EpochMs): void {
    for (const [commandId, { at }] of this.#given) if (at + KEPT_MS < now) this.#given.delete(commandId)
  }
}
