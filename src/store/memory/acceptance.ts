/** The order of acceptance: gives each run its `seq`, and lists runs by it, also after some were removed. */

interface Accepted {
  readonly seq: number
  /** null: the run was removed. */
  id: string | null
}

export class Acceptance {
  #last = 0
  /** By `seq`. Removed ones stay as gaps, which are closed once they are the most. */
  #accepted: Accepted[] = []
  #gaps = 0

  nextSeq(): number {
    return this.#last + 1
  }

  /** `seq` is what `nextSeq` has just given. */
  add(seq: number, id: string): void {
    this.#last = seq
    this.#accepted.push({ seq, id })
  }

  remove(seq: number): void {
    const accepted = this.#accepted[this.#firstFrom(seq)]
    if (accepted === undefined || accepted.seq !== seq || accepted.id === null) return
    accepted.id = null
    this.#gaps += 1
    if (this.#gaps <= this.#accepted.length / 2) return
    this.#accepted = this.#accepted.filter(({ id }) => id !== null)
    this.#gaps = 0
  }

  /** The ids of those before `beforeSeq`, the newest first. */
  *newest(beforeSeq: number = this.nextSeq()): Generator<string> {
    for (let at = this.#firstFrom(beforeSeq) - 1; at >= 0; at--) {
      const id = this.#accepted[at]?.id
      if (id !== undefined && id !== null) yield id
    }
  }

  /** Where the first with this `seq`, or a later one, stands. */
  #firstFrom(seq: number): number {
    let from = 0
    let to = this.#accepted.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#accepted[middle]?.seq ?? seq) < seq) from = middle + 1
      else to = middle
    }
    return from
  }
}
