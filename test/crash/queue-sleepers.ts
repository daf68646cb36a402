/** What a process says of the workflows that slept in it. */
export interface Slept {
  readonly asleep: number
  readonly woken: number
  /** In bytes, after garbage collection. */
  readonly heapGrowth: number
  readonly rssGrowth: number
  readonly wakingMs: number
}
