/**
 * The lanes of partitioned queues that have enqueued runs, so that a claim finds them without a look at the runs, and
 * without one at lanes that are closed.
 *
 * A row stands for the enqueued runs of one lane, definition and version, of which there is at least one (or was, a
 * moment ago). `place` is the turn of the lane. `ready_at` says when there may be room: 0: now; later: when its rate
 * limit opens; null: once a run of the lane ends or lets go of its claim. It may say too early that there is room,
 * which the claim that finds out corrects; never too late.
 *
 * Locks. Whoever adds a run keeps FOR KEY SHARE on the row, so that no claim deletes it as empty before the run can be
 * seen; this hinders no claim from giving the row another place. Whoever frees a slot locks the rows of the lane FOR NO
 * KEY UPDATE, after all rows of runs; so does a claim that closes a lane, which has made sure that nobody is about to
 * free a slot of it at that moment (claim/claim.ts). All lock in the order of the primary key.
 */
import { text } from '../columns.ts'
import type { RunRecord } from '../records.ts'
import type { Row, Transaction } from './session.ts'
import { Interference } from './session.ts'

export interface LaneName {
  readonly queue: string
  readonly lane: string
}
/** The runs that a row stands for. */
export interface Listed extends LaneName, Pick<RunRecord, 'definition' | 'version'> {}

/** Here a version is part of a key, which can't be null. */
const NO_VERSION = ''

export function toLaneVersion(version: string | null): string {
  return version === null ? NO_VERSION : `=${version}`
}

export function fromLaneVersion(column: unknown): string | null {
  return column === NO_VERSION ? null : text(column).slice(1)
}

/**
 * Answers with the rows that are there now for certain. The others were added or deleted by other transactions since
 * the statement began: it has waited for them. A lane without any row goes to the back, in the order given.
 */
export const ADD_STARTS = `
with asked as materialized (
  select queue, lane, definition, version, min(n) as n
  from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as a (queue, lane, definition, version, n)
  group by queue, lane, definition, version),
known as materialized (
  select l.queue, l.lane, l.definition, l.version from asked a cross join lateral (
    select * from perdure.lanes l
    where l.queue = a.queue and l.lane = a.lane and l.definition = a.definition and l.version = a.version
    for key share of l) l),
turns as materialized (
  select queue, lane, coalesce(
    (select min(l.place) from perdure.lanes l where l.queue = g.queue and l.lane = g.lane),
    pg_catalog.nextval('perdure.places')) as place
  from (
    select a.queue, a.lane, min(a.n) as n from asked a where not exists (
      select 1 from known k where k.queue = a.queue and k.lane = a.lane and k.definition = a.definition
        and k.version = a.version)
    group by a.queue, a.lane order by min(a.n)) g),
added as (
  insert into perdure.lanes (queue, lane, definition, version, place, ready_at)
  select a.queue, a.lane, a.definition, a.version, t.place, 0
  from asked a join turns t on t.queue = a.queue and t.lane = a.lane
  where not exists (
    select 1 from known k where k.queue = a.queue and k.lane = a.lane and k.definition = a.definition
      and k.version = a.version)
  order by a.queue, a.lane, a.definition, a.version
  on conflict do nothing
  returning queue, lane, definition, version)
select queue, lane, definition, version from known
union all
select queue, lane, definition, version from added`

/** More would mean that claims and starts of one lane chase each other, which a transaction begun anew ends, too. */
const MOST_TRIES = 5

/** Enqueued runs have come to these lanes: their rows are there, and stay until this transaction has ended. */
export async function addStarts(transaction: Transaction, runs: readonly Listed[]): Promise<void> {
  let missing = [...new Map(runs.map((run) => [keyOf(run), run])).values()]
  for (let tries = 0; missing.length > 0; tries += 1) {
    if (tries === MOST_TRIES) throw new Interference('lanes come and go')
    const rows = await transaction.query(ADD_STARTS, [
      missing.map(({ queue }) => queue),
      missing.map(({ lane }) => lane),
      missing.map(({ definition }) => definition),
      missing.map(({ version }) => toLaneVersion(version)),
    ])
    const there = new Set(rows.map((row) => keyOf(toListed(row))))
    missing = missing.filter((run) => !there.has(keyOf(run)))
  }
}

export function keyOf({ queue, lane, definition, version }: Listed): string {
  return JSON.stringify([queue, lane, definition, version])
}

function toListed(row: Row): Listed {
  return { queue: text(row[0]), lane: text(row[1]), definition: text(row[2]), version: fromLaneVersion(row[3]) }
}

/**
 * Rows of lanes, lane by lane in the order in which all lock them: $1 queues, $2 lanes. Without `offset 0`, conditions
 * from without would be tested on rows as they were before they are locked.
 */
const LOCKED = `
  from (
    select distinct queue collate "C" as queue, lane collate "C" as lane
    from unnest($1::text[], $2::text[]) as a (queue, lane) order by 1, 2) a
  cross join lateral (
    select * from perdure.lanes l where l.queue = a.queue and l.lane = a.lane
    order by l.definition, l.version offset 0 for no key update of l) l`

export const LOCK_LANES = `select l.queue, l.lane, l.definition, l.version ${LOCKED}`

/** Answers with the rows that are there. */
export async function lockLanes(transaction: Transaction, lanes: readonly LaneName[]): Promise<readonly Listed[]> {
  if (lanes.length === 0) return []
  const rows = await transaction.query(LOCK_LANES, [lanes.map(({ queue }) => queue), lanes.map(({ lane }) => lane)])
  return rows.map(toListed)
}

/** The row as it is once it is locked says whether it is closed, not as the statement saw it when it began. */
export const OPEN_LANES = `
update perdure.lanes l set ready_at = 0
from (
  select l.queue, l.lane, l.definition, l.version, l.ready_at ${LOCKED}) locked
where locked.ready_at is null and l.queue = locked.queue and l.lane = locked.lane
  and l.definition = locked.definition and l.version = locked.version`

/** Runs have let go of what they held of these lanes: of their claim, or of their turn. After all rows of runs. */
export async function openLanes(transaction: Transaction, lanes: readonly LaneName[]): Promise<void> {
  if (lanes.length === 0) return
  await transaction.query(OPEN_LANES, [lanes.map(({ queue }) => queue), lanes.map(({ lane }) => lane)])
}
