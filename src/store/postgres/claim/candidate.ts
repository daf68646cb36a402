/** A run that is locked to be claimed, as it is read. */

import { text } from '../../columns.ts'
import type { EncodedValue, RunRecord } from '../../records.ts'
import { RUN_COLUMNS, RUN_WIDTH, toRun } from '../runs.ts'
import type { Row } from '../session.ts'

export interface Candidate {
  readonly run: RunRecord
  readonly input: EncodedValue
}

/** In the order that `toCandidate` reads. */
export const CANDIDATE_COLUMNS = `${RUN_COLUMNS}, (select i.input from perdure.inputs i where i.run = r.seq)`
/** So many are they: what a statement selects besides comes after. */
export const CANDIDATE_WIDTH = RUN_WIDTH + 1

export function toCandidate(row: Row): Candidate {
  return { run: toRun(row), input: text(row[RUN_WIDTH]) }
}
