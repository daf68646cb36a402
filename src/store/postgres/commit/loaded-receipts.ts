/** Receipts of commands that were sent before, and those that this batch gives. */
import type { ReceiptRows } from '../../apply/rows.ts'

export interface Receipt {
  readonly commandId: string
  /** JSON text of the answer. */
  readonly outcome: string
}

export class LoadedReceipts<Answer extends object> implements ReceiptRows<Answer> {
  readonly #known = new Map<string, string>()
  readonly #given: Receipt[] = []
  readonly #read: (answer: unknown, commandId: string) => Answer

  /** `read` makes an answer of parsed JSON. */
  constructor(read: (answer: unknown, commandId: string) => Answer) {
    this.#read = read
  }

  load({ commandId, outcome }: Receipt): void {
    this.#known.set(commandId, outcome)
  }

  once(commandId: string, _now: number, act: () => Answer): Answer {
    const known = this.#known.get(commandId)
    if (known !== undefined) return this.#read(JSON.parse(known), commandId)
    const answer = act()
    const outcome = JSON.stringify(answer)
    this.#known.set(commandId, outcome)
    this.#given.push({ commandId, outcome })
    return answer
  }

  get given(): readonly Receipt[] {
    return this.#given
  }
}
