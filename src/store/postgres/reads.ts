/**
 * What is known of runs, by their ids: one statement each, however many are asked about.
 *
 * Each id is looked up by itself: `lateral (... offset 0)` keeps the planner, which can't know how many there are, from
 * reading a whole table of millions to join it with ten thousand ids.
 */
import { failureKind, number, text, textOrNull } from '../columns.ts'
import type { AttemptRecord, CheckpointRecord, EncodedValue, Ending, RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import { currentAttempt } from '../transitions.ts'
import { ATTEMPT_COLUMNS, toAttempt } from './attempts.ts'
import { ENTRY_COLUMNS, toCheckpoint } from './checkpoints.ts'
import type { Database } from './database.ts'
import { RUN_COLUMNS, RUN_WIDTH, toRun, toStatus } from './runs.ts'
import type { Row } from './session.ts'

export const RUNS_BY_ID = `
select ${RUN_COLUMNS}
from unnest($1::text[]) as asked (id)
cross join lateral (select * from perdure.runs where id = asked.id offset 0) r`

export async function runs(database: Database, ids: readonly string[]): Promise<readonly (RunRecord | undefined)[]> {
  const found = new Map<string, RunRecord>()
  for (const row of await byId(database, RUNS_BY_ID, ids)) {
    const run = toRun(row)
    found.set(run.id, run)
  }
  return ids.map((id) => found.get(id))
}

export const INPUTS_BY_ID = `
select asked.id, i.input
from unnest($1::text[]) as asked (id)
cross join lateral (select seq from perdure.runs where id = asked.id offset 0) r
cross join lateral (select input from perdure.inputs where run = r.seq offset 0) i`

export async function inputs(
  database: Database,
  ids: readonly string[],
): Promise<readonly (EncodedValue | undefined)[]> {
  const rows = await byId(database, INPUTS_BY_ID, ids)
  const found = new Map(rows.map((row) => [text(row[0]), text(row[1])]))
  return ids.map((id) => found.get(id))
}

/** Of those that have ended or are not there. */
export const ENDINGS_BY_ID = `
select asked.id, r.status, r.failure_kind, e.output, e.error
from unnest($1::text[]) as asked (id)
left join lateral (
  select seq, status, failure_kind, ended_at from perdure.runs where id = asked.id offset 0) r on true
left join lateral (
  select output, error from perdure.endings where run = r.seq and r.ended_at is not null offset 0) e on true
where r.seq is null or r.ended_at is not null`

export async function endings(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Ending | 'missing'>> {
  const rows = await byId(database, ENDINGS_BY_ID, ids)
  return new Map(rows.flatMap((row) => toEnding(row)))
}

function toEnding([id, status, kind, output, error]: Row): readonly (readonly [string, Ending | 'missing'])[] {
  if (status === null) return [[text(id), 'missing']]
  const ended = toStatus(status)
  if (!isTerminal(ended)) return []
  if (ended === 'SUCCESS') return [[text(id), { status: ended, output: text(output) }]]
  return [[text(id), { status: ended, failure: { kind: failureKind(kind), error: textOrNull(error) } }]]
}

export const HISTORIES_BY_ID = `
select asked.id, ${ENTRY_COLUMNS}
from unnest($1::text[]) as asked (id)
cross join lateral (select seq from perdure.runs where id = asked.id offset 0) r
cross join lateral (select * from perdure.checkpoints where run = r.seq offset 0) c
order by r.seq, c.seq`

export async function histories(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly CheckpointRecord[]>> {
  const found = new Map<string, CheckpointRecord[]>(ids.map((id) => [id, []]))
  for (const row of await byId(database, HISTORIES_BY_ID, ids)) found.get(text(row[0]))?.push(toCheckpoint(row, 1))
  return found
}

/** One row at least if the run is there. */
export const ATTEMPTS_BY_ID = `
select ${RUN_COLUMNS}, a.number, ${ATTEMPT_COLUMNS}
from perdure.runs r left join perdure.attempts a on a.run = r.seq
where r.id = $1 order by a.number`

export async function attempts(database: Database, id: string): Promise<readonly AttemptRecord[]> {
  const rows = await database.read((session) => session.query(ATTEMPTS_BY_ID, [id]))
  const [first] = rows
  if (first === undefined) return []
  const past = rows.flatMap((row) => (row[RUN_WIDTH] === null ? [] : [toAttempt(row, RUN_WIDTH + 1)]))
  const current = currentAttempt(toRun(first))
  return current === null ? past : [...past, current]
}

export const SIGNALS_BY_WAIT = `
select asked.number, w.payload
from unnest($1::text[], $2::bigint[]) with ordinality as asked (id, position, number)
cross join lateral (select seq from perdure.runs where id = asked.id offset 0) r
cross join lateral (
  select payload from perdure.waits
  where run = r.seq and position = asked.position and type = 'signal' and state = 'signalled' offset 0) w`

export async function signals(
  database: Database,
  waits: readonly { readonly runId: string; readonly position: number }[],
): Promise<ReadonlyMap<number, EncodedValue>> {
  if (waits.length === 0) return new Map()
  const [ids, positions] = [waits.map(({ runId }) => runId), waits.map(({ position }) => position)]
  const rows = await database.read((session) => session.query(SIGNALS_BY_WAIT, [ids, positions]))
  return new Map(
    rows.map((row) => [number(row[0]) - 1, text(row[1])] as const).toSorted(([one], [other]) => one - other),
  )
}

async function byId(database: Database, sql: string, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return []
  return await database.read((session) => session.query(sql, [[...new Set(ids)]]))
}
