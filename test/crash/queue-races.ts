/** What a producer has seen of its races with a worker. */
export interface Races {
  /** From the call that started a run until it began, in milliseconds. */
  readonly latencies: number[]
  /** From the acknowledgement of the settlement of a run to that of the start of the next: how close the race was. */
  readonly offsets: number[]
}
