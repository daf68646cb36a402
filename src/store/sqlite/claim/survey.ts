/**
 * What the sources of a claim have to give, in two statements however many there are, and without a look at any run
 * that the claimant may not take.
 */
import type { EpochMs } from '../../../core/clock.ts'
import type { ClaimRequest } from '../../contract.ts'
import type { Database } from '../database.ts'
import type { List } from './lists.ts'
import { findLists } from './lists.ts'
import type { Sources } from './sources.ts'
import { findSources, hasRateLimit, hasRoom } from './sources.ts'

export interface Survey extends Sources {
  readonly now: EpochMs
  readonly lists: readonly List[]
  /** What the claimant serves, as JSON text. */
  readonly definitions: string
}

export function survey(database: Database, request: ClaimRequest, now: EpochMs): Survey {
  const found = findSources(database, request, now)
  const definitions = JSON.stringify([...new Set(request.definitions.map(({ name }) => name))])
  return { ...found, now, definitions, lists: findLists(database, found, { definitions, owner: request.owner, now }) }
}

/** True if a claim would change anything. */
export function isClaimable({ sources, lists, held }: Survey, { tokens }: ClaimRequest): boolean {
  if (held && tokens.length > 0) return true
  const startable = new Set(
    sources
      .filter(({ source, rateOpensAt }) => rateOpensAt === null && hasRoom(source))
      .map(({ source }) => source.queue),
  )
  const rated = new Set(sources.filter(({ queue }) => hasRateLimit(queue)).map(({ source }) => source.queue))
  return lists.some(({ work, queue }) => {
    if (tokens.length > 0) return work !== 'start' || startable.has(queue)
    // Without a token, only what the next instant depends on.
    return work === 'promote' || (work === 'start in lanes' && rated.has(queue))
  })
}
