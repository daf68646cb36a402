/** Runs that have ended, by when, for retention: of each definition, queue and status apart. */
import type { EpochMs } from '../../core/clock.ts'
import type { Retention, RunRecord, TerminalStatus } from '../records.ts'
import { isTerminal } from '../records.ts'
import { OrderedIndex } from './ordered-index.ts'

/** Since when a run may be removed. */
export interface Removable {
  readonly id: string
  readonly at: EpochMs
}

const KEPT: Readonly<Record<TerminalStatus, keyof Retention>> = {
  SUCCESS: 'success',
  ERROR: 'error',
  DEAD: 'dead',
  CANCELLED: 'cancelled',
}

export class EndedRuns {
  readonly #definitions = new Map<string, Map<string | null, Map<TerminalStatus, OrderedIndex>>>()

  /** A row was replaced, created (no `old`) or removed (no `run`). */
  change(old: RunRecord | undefined, run: RunRecord | undefined): void {
    if (old !== undefined && isTerminal(old.status)) {
      this.#definitions.get(old.definition)?.get(old.queue)?.get(old.status)?.delete(old.id)
    }
    if (run !== undefined && isTerminal(run.status) && run.endedAt !== null) {
      this.#indexOf(run.definition, run.queue, run.status).set(run.id, run.endedAt, run.seq)
    }
  }

  /** The run of a definition that is to be removed next, by the retention that holds in its queue. */
  next(definition: string, retentionIn: (queue: string | null) => Retention | null): Removable | undefined {
    let next: Removable | undefined
    for (const [queue, statuses] of this.#definitions.get(definition) ?? []) {
      const retention = retentionIn(queue)
      if (retention === null) continue
      for (const [status, ended] of statuses) {
        const kept = retention[KEPT[status]]
        const first = ended.first()
        if (kept === null || first === undefined) continue
        // One that has ended exactly so long ago is kept still.
        const at = first.rank + kept + 1
        if (next === undefined || at < next.at) next = { id: first.id, at }
      }
    }
    return next
  }

  #indexOf(definition: string, queue: string | null, status: TerminalStatus): OrderedIndex {
    const queues = this.#definitions.get(definition) ?? new Map<string | null, Map<TerminalStatus, OrderedIndex>>()
    const statuses = queues.get(queue) ?? new Map<TerminalStatus, OrderedIndex>()
    const index = statuses.get(status) ?? new OrderedIndex()
    this.#definitions.set(definition, queues.set(queue, statuses.set(status, index)))
    return index
  }
}
