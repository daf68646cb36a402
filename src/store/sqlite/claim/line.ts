/** What comes next of several lists that are each in order: holds their heads, few at a time. */
export class Line<Head> {
  readonly #precedes: (a: Head, b: Head) => boolean
  /** The first is last, where it is cheap to take. */
  readonly #heads: Head[] = []

  constructor(precedes: (a: Head, b: Head) => boolean) {
    this.#precedes = precedes
  }

  add(head: Head | undefined): void {
    if (head === undefined) return
    let from = 0
    let to = this.#heads.length
    while (from < to) {
      const middle = (from + to) >> 1
      const other = this.#heads[middle]
      if (other !== undefined && this.#precedes(head, other)) from = middle + 1
      else to = middle
    }
    this.#heads.splice(from, 0, head)
  }

  first(): Head | undefined {
    return this.#heads.at(-1)
  }

  shift(): Head | undefined {
    return this.#heads.pop()
  }
}
