/** A run that may be claimed, as it is read. */

import { text } from '../../columns.ts'
import type { EncodedValue, RunRecord } from '../../records.ts'
import type { Row } from '../driver.ts'
import { RUN_COLUMNS, RUN_WIDTH, toRun } from '../runs.ts'

export interface Candidate {
  readonly run: RunRecord
  readonly input: EncodedValue
}

/** In the order that `toCandidate` reads. */
export const CANDIDATE_COLUMNS = `${RUN_COLUMNS},
  coalesce(input, (select large.input from perdure_inputs large where large.run = seq))`

export function toCandidate(row: Row): Candidate {
  return { run: toRun(row), input: text(row[RUN_WIDTH]) }
}

/** The order of a lane. */
export function precedes({ run: a }: Candidate, { run: b }: Candidate): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.seq < b.seq)
}
