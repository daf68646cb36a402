/** Removes what nobody needs any more. */
import type { EpochMs } from '../../core/clock.ts'
import type { SweepOutcome, SweepRequest } from '../contract.ts'
import type { Removable } from './ended-runs.ts'
import type { Tables } from './tables.ts'

export function sweep(tables: Tables, request: SweepRequest, now: EpochMs): SweepOutcome {
  tables.signalReceipts.sweep(now)
  tables.kvReceipts.sweep(now)
  let removed = 0
  let next = nextOf(tables, request)
  for (; next !== undefined && next.at <= now && removed < request.limit; next = nextOf(tables, request)) {
    tables.remove(tables.runs.at(next.id))
    removed += 1
  }
  return { removed, nextAt: next?.at ?? null }
}

function nextOf(tables: Tables, { definitions }: SweepRequest): Removable | undefined {
  let next: Removable | undefined
  for (const { name, retention } of definitions) {
    const found = tables.runs.ended.next(name, (queue) => retention ?? tables.queue(queue)?.retention ?? null)
    if (found !== undefined && (next === undefined || found.at < next.at)) next = found
  }
  return next
}
