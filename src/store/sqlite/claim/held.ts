/** Runs that are held under a token of the request already: it was sent before, and the answer was lost. */
import type { ClaimedRun, ClaimRequest } from '../../contract.ts'
import type { Database } from '../database.ts'
import { CANDIDATE_COLUMNS, toCandidate } from './candidate.ts'

export const HELD_UNDER = `
select ${CANDIDATE_COLUMNS} from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and owner = ? and token between ? and ? order by token`

export function heldUnder(database: Database, { owner, tokens }: ClaimRequest): readonly ClaimedRun[] {
  const asked = new Set(tokens)
  return database
    .prepare(HELD_UNDER)
    .all(owner, ...ends(tokens))
    .map(toCandidate)
    .flatMap(({ run, input }) => {
      const { token } = run
      return token === null || !asked.has(token) ? [] : [{ run, token, input }]
    })
}

/** Tokens of one request lie close together, as they are made in order of time. */
export function ends(tokens: readonly string[]): readonly [first: string, last: string] {
  let [first = '', last = ''] = tokens
  last = first
  for (const token of tokens) {
    if (token < first) first = token
    if (token > last) last = token
  }
  return [first, last]
}
