/** Past attempts of runs. The current one is not stored: the run's row tells it. */

import { failureKindOrNull, number, numberOrNull, textOrNull, word } from '../columns.ts'
import type { AttemptRecord } from '../records.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'

export const INSERT_ATTEMPT = `
insert into perdure_attempts (run, number, epoch, attempt, outcome, owner, started_at, ended_at, failure_kind)
select ?, coalesce(max(number) + 1, 0), ?, ?, ?, ?, ?, ?, ? from perdure_attempts where run = ?`

export function appendAttempts(database: Database, seq: number, attempts: readonly AttemptRecord[]): void {
  const insert = database.prepare(INSERT_ATTEMPT)
  for (const { epoch, attempt, outcome, owner, startedAt, endedAt, failureKind } of attempts) {
    insert.run(seq, epoch, attempt, outcome, owner, startedAt, endedAt, failureKind, seq)
  }
}

export const PAST_ATTEMPTS = `
select epoch, attempt, outcome, owner, started_at, ended_at, failure_kind
from perdure_attempts where run = ? order by number`

export function pastAttempts(database: Database, seq: number): readonly AttemptRecord[] {
  return database.prepare(PAST_ATTEMPTS).all(seq).map(toAttempt)
}

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

function toAttempt(row: Row): AttemptRecord {
  return {
    epoch: number(row[0]),
    attempt: number(row[1]),
    outcome: toOutcome(row[2]),
    owner: textOrNull(row[3]),
    startedAt: numberOrNull(row[4]),
    endedAt: numberOrNull(row[5]),
    failureKind: failureKindOrNull(row[6]),
  }
}
