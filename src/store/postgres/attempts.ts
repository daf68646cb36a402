/** Past attempts of runs, as they are read. The current one is not stored: the run's row tells it. */
import { failureKindOrNull, number, numberOrNull, textOrNull, word } from '../columns.ts'
import type { AttemptRecord } from '../records.ts'
import type { Row } from './session.ts'

/** In the order that `toAttempt` reads. */
export const ATTEMPT_COLUMNS = `a.epoch, a.attempt, a.outcome, a.owner, a.started_at, a.ended_at, a.failure_kind`

const toOutcome = word([
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'dead',
  'crashed',
  'interrupted',
  'requeued',
] as const)

/** `at`: where its columns begin in the row. */
export function toAttempt(row: Row, at = 0): AttemptRecord {
  return {
    epoch: number(row[at]),
    attempt: number(row[at + 1]),
    outcome: toOutcome(row[at + 2]),
    owner: textOrNull(row[at + 3]),
    startedAt: numberOrNull(row[at + 4]),
    endedAt: numberOrNull(row[at + 5]),
    failureKind: failureKindOrNull(row[at + 6]),
  }
}
