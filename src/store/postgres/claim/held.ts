/** Runs that are held under a token of the request already: it was sent before, and the answer was lost. */
import type { ClaimedRun, ClaimRequest } from '../../contract.ts'
import type { Transaction } from '../session.ts'
import { CANDIDATE_COLUMNS, toCandidate } from './candidate.ts'

export const HELD_UNDER = `
select ${CANDIDATE_COLUMNS} from perdure.runs r
where r.status = 'PENDING' and r.owner = $1 and r.token = any ($2::text[]) order by r.token`

export async function heldUnder(
  transaction: Transaction,
  { owner, tokens }: ClaimRequest,
): Promise<readonly ClaimedRun[]> {
  const rows = await transaction.query(HELD_UNDER, [owner, tokens])
  return rows
    .map(toCandidate)
    .flatMap(({ run, input }) => (run.token === null ? [] : [{ run, token: run.token, input }]))
}
