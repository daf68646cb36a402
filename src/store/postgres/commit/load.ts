/**
 * What a batch reads once it has its locks: one statement, of which each part answers with a list as JSON text. A batch
 * that only starts runs takes one form of it, one without starts another, so that each reads nothing it doesn't need.
 */
import type { EpochMs } from '../../../core/clock.ts'
import type { Row, Transaction } from '../session.ts'
import { NOW } from '../session.ts'
import { FAMILY } from './family.ts'

// ── For starts and requeues ─────────────────────────────────────────────────────────────────────────────────────

const PLACE_COLUMNS = 'q.name, q.partitioned, q.priority_enabled'
const RUN_LIST = `pg_catalog.json_build_array(r.seq, r.id, r.definition, r.kind, r.queue, r.priority, r.partition_key,
  r.lane, r.rank, r.dedup_id, r.status, r.input_hash, r.due_at, r.token, r.owner, r.lease_until, r.epoch, r.version,
  r.parent_id, r.deliveries, r.attempt, r.crashes, r.max_recoveries, r.timeout_ms, r.deadline_at, r.cancel_requested,
  r.created_at, r.started_at, r.ended_at, r.failure_kind, r.start_id, r.operation_id,
  case when r.input_hash is null then (select i.input from perdure.inputs i where i.run = r.seq) end)`

/** $1: ids, $2 and $3: queues and deduplication ids, $4: queues, $5: how many places. */
const STARTS = `
(select pg_catalog.json_agg(${RUN_LIST}) from unnest($1::text[]) as asked (id)
  cross join lateral (select * from perdure.runs where id = asked.id offset 0) r) as seen,
(select pg_catalog.json_agg(${RUN_LIST}) from unnest($2::text[], $3::text[]) as asked (queue, dedup_id)
  cross join lateral (
    select * from perdure.runs where queue = asked.queue and dedup_id = asked.dedup_id
      and status in ('ENQUEUED', 'DELAYED', 'PENDING', 'WAITING') offset 0) r) as holders,
(select pg_catalog.json_agg(pg_catalog.json_build_array(${PLACE_COLUMNS})) from (
  select * from perdure.queues q where q.name = any($4::text[]) order by q.name for key share) q) as queues,
(select pg_catalog.json_agg(pg_catalog.nextval('perdure.places')) from pg_catalog.generate_series(1, $5::integer)) as places`

// ── For all others ──────────────────────────────────────────────────────────────────────────────────────────────

/**
 * From parameter `n` on: runs with a history, runs with waits, runs that may end, runs that may be cancelled, keys of
 * signals, commands with receipts, queues of runs that are let go.
 */
const OTHERS = (n: number): string => `
(select pg_catalog.json_agg(pg_catalog.json_build_array(
    asked.run, (select pg_catalog.max(c.seq) from perdure.checkpoints c where c.run = asked.run)))
  from unnest($${n}::bigint[]) as asked (run)) as histories,
(select pg_catalog.json_agg(pg_catalog.json_build_array(r.id, w.position, w.key, w.state, w.payload))
  from unnest($${n + 1}::bigint[]) as asked (run)
  cross join lateral (select * from perdure.waits where run = asked.run and type = 'signal' offset 0) w
  cross join lateral (select id from perdure.runs where seq = w.run offset 0) r) as waits,
(select pg_catalog.json_agg(pg_catalog.json_build_array(asked.id, w.position, r.id))
  from (
    select e.id collate "C" as id from unnest($${n + 2}::text[]) as e (id) union select f.id from family f) asked
  cross join lateral (select run, position from perdure.waits where type = 'child' and key = asked.id offset 0) w
  cross join lateral (select id from perdure.runs where seq = w.run offset 0) r) as parents,
(select pg_catalog.json_agg(f.id) from (select distinct id from family where found) f) as families,
(select pg_catalog.json_agg(pg_catalog.json_build_array(r.id, w.position, w.key, w.state, w.payload))
  from unnest($${n + 4}::text[]) as asked (key)
  cross join lateral (
    select * from perdure.waits where type = 'signal' and state = 'open' and key = asked.key offset 0) w
  cross join lateral (select id from perdure.runs where seq = w.run offset 0) r) as open_waits,
(select pg_catalog.json_agg(pg_catalog.json_build_array(s.key, s.payload)) from unnest($${n + 4}::text[]) as asked (key)
  cross join lateral (select * from perdure.signals where key = asked.key offset 0) s) as signals,
(select pg_catalog.json_agg(pg_catalog.json_build_array(c.command_id, c.outcome))
  from unnest($${n + 5}::text[]) as asked (id)
  cross join lateral (select * from perdure.receipts where command_id = asked.id offset 0) c) as receipts,
(select pg_catalog.json_agg(pg_catalog.json_build_array(${PLACE_COLUMNS}))
  from perdure.queues q where q.name = any($${n + 6}::text[])) as queues_let_go`

/** The clock is read when all else has been: a row of a queue may have been waited for. */
export const LOAD_NOTHING = `select ${NOW}`
export const LOAD_STARTS = `select ${NOW}, loaded.* from (select ${STARTS} offset 0) loaded`
export const LOAD_OTHERS = `
with recursive ${FAMILY(4)}
select ${NOW}, loaded.* from (select ${OTHERS(1)} offset 0) loaded`
export const LOAD_BOTH = `
with recursive ${FAMILY(9)}
select ${NOW}, loaded.* from (select ${STARTS}, ${OTHERS(6)} offset 0) loaded`

/** What starts, and requeues, have to know. */
export interface StartQuestions {
  readonly ids: readonly string[]
  readonly slots: readonly { readonly queue: string; readonly dedupId: string }[]
  readonly queues: readonly string[]
  readonly places: number
}
export interface OtherQuestions {
  readonly histories: readonly number[]
  readonly waits: readonly number[]
  readonly ending: readonly string[]
  readonly cancelled: readonly string[]
  readonly signals: readonly string[]
  readonly receipts: readonly string[]
  readonly queues: readonly string[]
}

/** Lists of rows, each as its part of the statement builds them. */
export interface Loaded {
  readonly now: EpochMs
  readonly seen: readonly Row[]
  readonly holders: readonly Row[]
  readonly queues: readonly Row[]
  readonly places: readonly unknown[]
  readonly histories: readonly Row[]
  readonly waits: readonly Row[]
  readonly parents: readonly Row[]
  readonly families: readonly unknown[]
  readonly openWaits: readonly Row[]
  readonly signals: readonly Row[]
  readonly receipts: readonly Row[]
}

/** null: there is nothing of that sort to ask. */
export async function load(
  transaction: Transaction,
  starts: StartQuestions | null,
  others: OtherQuestions | null,
): Promise<Loaded> {
  const statement = statementFor(starts, others)
  const values = [...(starts === null ? [] : startValues(starts)), ...(others === null ? [] : otherValues(others))]
  const [row = []] = await transaction.query(statement, values)
  const now = transaction.instant(row[0])
  const at = starts === null ? 1 : 5
  const ofStarts = (column: number): readonly Row[] => (starts === null ? [] : rows(row[column]))
  const ofOthers = (column: number): readonly Row[] => (others === null ? [] : rows(row[at + column]))
  return {
    now,
    seen: ofStarts(1),
    holders: ofStarts(2),
    queues: [...ofStarts(3), ...ofOthers(7)],
    places: starts === null ? [] : list(row[4]),
    histories: ofOthers(0),
    waits: ofOthers(1),
    parents: ofOthers(2),
    families: others === null ? [] : list(row[at + 3]),
    openWaits: ofOthers(4),
    signals: ofOthers(5),
    receipts: ofOthers(6),
  }
}

function statementFor(starts: StartQuestions | null, others: OtherQuestions | null): string {
  if (starts === null) return others === null ? LOAD_NOTHING : LOAD_OTHERS
  return others === null ? LOAD_STARTS : LOAD_BOTH
}

function startValues({ ids, slots, queues, places }: StartQuestions): readonly unknown[] {
  return [ids, slots.map(({ queue }) => queue), slots.map(({ dedupId }) => dedupId), queues, places]
}

function otherValues(questions: OtherQuestions): readonly unknown[] {
  const { histories, waits, ending, cancelled, signals, receipts, queues } = questions
  return [histories, waits, ending, cancelled, signals, receipts, queues]
}

function list(column: unknown): readonly unknown[] {
  if (typeof column !== 'string') return []
  const parsed: unknown = JSON.parse(column)
  return Array.isArray(parsed) ? parsed : []
}

function rows(column: unknown): readonly Row[] {
  return list(column).filter((row): row is Row => Array.isArray(row))
}

/** Entries that are recorded already, from the first that a command sends again on. */
export const RECORDED_ENTRIES = `
select c.run, c.seq, c.position, c.verb, c.name, c.value
from unnest($1::bigint[], $2::bigint[]) as asked (run, first)
cross join lateral (select * from perdure.checkpoints where run = asked.run and seq >= asked.first offset 0) c`

/** In the order of `Loaded.queues`. */
export const QUEUES = `select ${PLACE_COLUMNS} from perdure.queues q where q.name = any($1::text[])`
