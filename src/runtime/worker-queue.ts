/** A queue as a worker serves it: what all processes share of it, and what is this process's own. */
import type { NewQueue } from '../store/contract.ts'

export interface WorkerQueue {
  /** Written to the store at launch. */
  readonly registration: NewQueue
  /** How many of its runs (of each lane, if it is partitioned) this process may have in hand; null: any number. */
  readonly workerConcurrency: number | null
  /** How many a round claims at most. */
  readonly maxTasksPerIteration: number
  readonly basePollingMs: number
  readonly maxPollingMs: number
  /** Of the claims of its runs; null: that of the hub. */
  readonly leaseMs: number | null
  /** False: this process starts runs on it, and dispatches none. */
  readonly listened: boolean
}
