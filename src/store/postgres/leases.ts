/** The lease lane: renewing claims, taking them away (reclaim.ts), and what is known of them. */
import type { EpochMs } from '../../core/clock.ts'
import { flag, numberOrNull, text, word } from '../columns.ts'
import type { HeldClaim, RenewOutcome } from '../contract.ts'
import type { Database } from './database.ts'
import { givenInstant } from './instant.ts'
import { pastLocks } from './past-locks.ts'
import type { Row, Session } from './session.ts'
import { NOW } from './session.ts'

export { reclaim } from './reclaim.ts'

/**
 * One statement is exact: what is looked at is the row as it is once it is locked, and nothing but `lease_until` is
 * written to it. Rows are found by their ids alone, as a plan could think that there are no claims to look through. $4:
 * the instant; null: the database's own.
 *
 * Nothing waits for the disk: a renewal that a power cut takes back leaves a lease that ends a little earlier, and
 * ending alone takes no claim away.
 */
const renewal = (locking: string, unrenewed: string): string => `
with asked as materialized (
  select id, token from unnest($1::text[], $2::text[]) as a (id, token) order by id collate "C"),
held as materialized (
  select r.seq from asked a
  cross join lateral (
    select seq, status, token from perdure.runs where id = a.id offset 0 for no key update ${locking}) r
  where r.status = 'PENDING' and r.token = a.token),
renewed as (
  update perdure.runs r set lease_until = coalesce($4::bigint, ${NOW}) + $3::bigint
  from held where r.seq = held.seq returning r.token, r.cancel_requested)
select a.token, case when n.token is null then ${unrenewed} else 'renewed' end, coalesce(n.cancel_requested, false),
  pg_catalog.set_config('synchronous_commit', 'off', true)
from asked a left join renewed n on n.token = a.token`

/** Passes over rows that others have locked: 'locked' is one that was held when the statement began. */
export const RENEW = renewal(
  'skip locked',
  `case when (select r.status = 'PENDING' and r.token = a.token from perdure.runs r where r.id = a.id)
    then 'locked' else 'lost' end`,
)
/** Waits for them. */
export const RENEW_LOCKED = renewal('', `'lost'`)

/** Most locks are held for the length of a commit; whoever holds one for longer holds up no other's renewal. */
const LOCK_TIMEOUT_MS = 50
const LONGEST_WAIT_MS = 1_000

const toState = word(['renewed', 'locked', 'lost'] as const)

/**
 * What stays locked is neither renewed nor lost: its turn comes with the next round. While it is locked, no reclaim can
 * take it either.
 */
export async function renew(database: Database, claims: readonly HeldClaim[], leaseMs: number): Promise<RenewOutcome> {
  const lost: string[] = []
  const cancelRequested: string[] = []
  const note = (renewed: readonly Renewed[]): ReadonlySet<string> => {
    for (const { token, state, cancel } of renewed) {
      if (state === 'lost') lost.push(token)
      if (cancel) cancelRequested.push(token)
    }
    return new Set(renewed.flatMap(({ token, state }) => (state === 'locked' ? [token] : [])))
  }
  if (claims.length === 0) return { lost, cancelRequested }
  const query = async (session: Session, sql: string, some: readonly HeldClaim[]): Promise<readonly Renewed[]> => {
    const [ids, tokens] = [some.map(({ runId }) => runId), some.map(({ token }) => token)]
    return (await session.query(sql, [ids, tokens, Math.ceil(leaseMs), givenInstant(database)])).map(toRenewed)
  }
  const locked = note(await database.read((session) => query(session, RENEW, claims)))
  const rest = claims.filter(({ token }) => locked.has(token))
  await pastLocks(rest, LONGEST_WAIT_MS, async (some) => {
    const renewed = await database.write((transaction) => query(transaction, RENEW_LOCKED, some), {
      lockTimeoutMs: LOCK_TIMEOUT_MS,
    })
    note(renewed)
  })
  return { lost, cancelRequested }
}

interface Renewed {
  readonly token: string
  readonly state: 'renewed' | 'locked' | 'lost'
  readonly cancel: boolean
}

function toRenewed(row: Row): Renewed {
  return { token: text(row[0]), state: toState(row[1]), cancel: flag(row[2]) }
}

export const NEXT_EXPIRY = `select min(lease_until) from perdure.runs where status = 'PENDING'`

export async function nextExpiry(database: Database): Promise<EpochMs | null> {
  const [row] = await database.read((session) => session.query(NEXT_EXPIRY))
  return numberOrNull(row?.[0] ?? null)
}

export const CANCEL_REQUESTS = `
select id, token from perdure.runs where status = 'PENDING' and cancel_requested and owner = $1`

export async function cancelRequests(database: Database, owner: string): Promise<readonly HeldClaim[]> {
  const rows = await database.read((session) => session.query(CANCEL_REQUESTS, [owner]))
  return rows.map((row) => ({ runId: text(row[0]), token: text(row[1]) }))
}
