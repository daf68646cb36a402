/** The row of a queue, as every store in a database has it. */
import { flag, number, numberOrNull, text, textOrNull, UnreadableValueError } from './columns.ts'
import type { QueueRecord, Retention } from './records.ts'

/** In the order that `toQueue` reads. */
export const QUEUE_COLUMNS = `name, global_concurrency, release_while_waiting, rate_limit, rate_period_ms,
  priority_enabled, partitioned, retention, paused, config_version, updated_at`
/** So many are they: what a statement selects besides comes after. */
export const QUEUE_WIDTH = 11

export function toQueue(row: readonly unknown[]): QueueRecord {
  const limit = numberOrNull(row[3])
  return {
    name: text(row[0]),
    globalConcurrency: numberOrNull(row[1]),
    releaseWhileWaiting: flag(row[2]),
    rateLimit: limit === null ? null : { limit, periodMs: number(row[4]) },
    priorityEnabled: flag(row[5]),
    partitioned: flag(row[6]),
    retention: toRetention(textOrNull(row[7])),
    paused: flag(row[8]),
    configVersion: number(row[9]),
    updatedAt: number(row[10]),
  }
}

function toRetention(json: string | null): Retention | null {
  if (json === null) return null
  const stored: unknown = JSON.parse(json)
  if (typeof stored !== 'object' || stored === null) throw new UnreadableValueError(`no retention: ${json}`)
  const periods = new Map<string, unknown>(Object.entries(stored))
  const period = (status: keyof Retention): number | null => numberOrNull(periods.get(status) ?? null)
  return { success: period('success'), error: period('error'), dead: period('dead'), cancelled: period('cancelled') }
}
