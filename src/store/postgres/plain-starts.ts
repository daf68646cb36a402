/**
 * Batches of nothing but plain starts (of no partition, at once, without deduplication), which most are where much is
 * enqueued: one trip to the server, where any other batch is locked, read and written in trips of their own.
 *
 * What the runs derive from their queues is computed from what was known of those before. The statement keeps the rows
 * of the queues FOR KEY SHARE, as every start does, and adds the runs only if the queues are as they were, and none of
 * the ids is there: all of the batch, or nothing. Nothing is what it does seldom; then the batch goes the other way. An
 * id that is taken by another transaction at this moment is an error, and the statement, run again, finds it.
 */
import { commit as applyAll } from '../apply/commands.ts'
import { flag, number, text } from '../columns.ts'
import type { Command, NewRun, Outcome } from '../commands.ts'
import type { RunRecord } from '../records.ts'
import type { QueueOfRun } from '../transitions.ts'
import { listOf } from './claim/json.ts'
import { WorkingSet } from './commit/working-set.ts'
import type { Database } from './database.ts'
import { givenInstant } from './instant.ts'
import type { Transaction } from './session.ts'
import { LockedError, NOW } from './session.ts'
import { insertedUnless } from './taken.ts'

/** $1 to $13: columns of the runs, $14: all ids, $15 and $16: queues as they are known, $17: the instant. */
export const START_PLAINLY = `
with queue as materialized (
  select q.name, q.partitioned, q.priority_enabled from perdure.queues q
  where q.name = any($15::text[]) order by q.name for key share),
known as materialized (
  select (
      select pg_catalog.count(*) from queue q join unnest($15::text[], $16::boolean[]) as a (name, priority_enabled)
        on a.name = q.name and a.priority_enabled = q.priority_enabled and not q.partitioned
    ) = pg_catalog.cardinality($15::text[])
    and (
      select pg_catalog.count(*) from unnest($14::text[]) as asked (id)
        cross join lateral (select 1 from perdure.runs where id = asked.id offset 0) r) = 0 as so),
clock as materialized (select coalesce($17::bigint, ${NOW}) as now from known),
given as materialized (
  select pg_catalog.nextval('perdure.places') as seq, u.* from (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[],
      $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::text[]) with ordinality
      as u (id, definition, kind, queue, priority, partition_key, lane, rank, input_hash, max_recoveries, timeout_ms,
        start_id, input, n)
    where (select so from known) order by n) u),
inputs as (insert into perdure.inputs (run, input) select seq, input from given),
created as (
  insert into perdure.runs (seq, id, definition, kind, queue, priority, partition_key, lane, rank, status, input_hash,
    epoch, deliveries, attempt, crashes, max_recoveries, timeout_ms, cancel_requested, created_at, start_id)
  select seq, id, definition, kind, queue, priority, partition_key, lane, rank, 'ENQUEUED', input_hash,
    0, 0, 0, 0, max_recoveries, timeout_ms, false, (select now from clock), start_id
  from given order by id collate "C" returning 1)
select (select pg_catalog.count(*) from created), (select now from clock),
  (select pg_catalog.json_agg(pg_catalog.json_build_array(q.name, q.partitioned, q.priority_enabled)) from queue q)`

/** Somebody keeps one of the ids, or a queue, for longer: on the other way the rest gets past that. */
const PATIENCE = { lockTimeoutMs: 10 }
/** So many batches go the other way after one that came here in vain. */
const REST = 20

export class PlainStarts {
  readonly #database: Database
  readonly #queues = new Map<string, QueueOfRun>()
  #resting = 0

  constructor(database: Database) {
    this.#database = database
  }

  /** undefined: nothing was done, and the batch has to go the other way. */
  async commit(commands: readonly Command[]): Promise<readonly Outcome[] | undefined> {
    const starts = plainStarts(commands)
    if (starts === undefined) return undefined
    const names = [...new Set(starts.flatMap(({ queue }) => queue ?? []))]
    if (names.some((name) => this.#queues.get(name)?.partitioned === true)) return undefined
    if (this.#resting > 0) {
      this.#resting -= 1
      return undefined
    }
    const { rows, outcomes } = this.#apply(commands, starts, names)
    const values = [...columnsOf(rows), starts.map(({ id }) => id), names, names.map((name) => this.#ranks(name))]
    try {
      const added = await this.#database.write((transaction) => this.#add(transaction, values), PATIENCE)
      if (added === rows.runs.created.size) return outcomes
    } catch (error) {
      // Parts of the batch may get through.
      if (!(error instanceof LockedError)) throw error
    }
    return undefined
  }

  async #add(transaction: Transaction, values: readonly unknown[]): Promise<number> {
    const asked = transaction.query(START_PLAINLY, [...values, givenInstant(this.#database)])
    transaction.finish()
    await insertedUnless(asked, 'a run was started')
    const [[count, now, queues] = []] = await asked
    transaction.instant(now)
    const added = number(count)
    if (added === 0 && !this.#learn(queues)) this.#resting = REST
    return added
  }

  #ranks(name: string): boolean {
    return this.#queues.get(name)?.priorityEnabled === true
  }

  /** True if anything of it is new. */
  #learn(queues: unknown): boolean {
    const rows = typeof queues === 'string' ? listOf(JSON.parse(queues)) : []
    let learned = false
    for (const [name, ...knobs] of rows.map(listOf)) {
      const queue = { partitioned: flag(knobs[0]), priorityEnabled: flag(knobs[1]) }
      const known = this.#queues.get(text(name))
      if (known?.partitioned === queue.partitioned && known.priorityEnabled === queue.priorityEnabled) continue
      this.#queues.set(text(name), queue)
      learned = true
    }
    return learned
  }

  /** As if it was known that the ids are new. The rows get their places and instants from the database. */
  #apply(
    commands: readonly Command[],
    starts: readonly NewRun[],
    names: readonly string[],
  ): { readonly rows: WorkingSet; readonly outcomes: readonly Outcome[] } {
    const rows = new WorkingSet()
    rows.runs.loadAbsent(starts.map(({ id }) => id))
    rows.runs.loadPlaces(starts.map((_, n) => n))
    for (const name of names) rows.loadQueue(name, { partitioned: false, priorityEnabled: this.#ranks(name) })
    return { rows, outcomes: applyAll(rows, commands, 0) }
  }
}

/** undefined: the batch does something else, too. */
function plainStarts(commands: readonly Command[]): readonly NewRun[] | undefined {
  const starts: NewRun[] = []
  for (const command of commands) {
    if (command.type !== 'enqueue') return undefined
    for (const run of command.runs) {
      if (!isPlain(run)) return undefined
      starts.push(run)
    }
  }
  return starts
}

function isPlain({ dedup, due, claim, kv, parentId }: NewRun): boolean {
  return dedup === null && due === null && claim === null && kv.length === 0 && parentId === null
}

function columnsOf({ runs, inputs }: WorkingSet): readonly (readonly unknown[])[] {
  const created = [...runs.created.values()]
  const column = <T>(of: (run: RunRecord) => T): readonly T[] => created.map(of)
  return [
    column(({ id }) => id),
    column(({ definition }) => definition),
    column(({ kind }) => kind),
    column(({ queue }) => queue ?? ''),
    column(({ priority }) => priority),
    column(({ partitionKey }) => partitionKey),
    column(({ lane }) => lane),
    column(({ rank }) => rank),
    column(({ inputHash }) => inputHash),
    column(({ maxRecoveries }) => maxRecoveries),
    column(({ timeoutMs }) => timeoutMs),
    column(({ startId }) => startId),
    column(({ id }) => inputs.get(id)),
  ]
}
