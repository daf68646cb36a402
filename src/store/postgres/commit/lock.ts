/**
 * The locks of the commit lane, and why nothing is lost between two statements of a batch.
 *
 * A batch is a transaction at READ COMMITTED: each statement sees what was committed before it began. What a command
 * decides by is therefore locked first, in statements of their own, and read by later ones; only the rows that are
 * locked themselves may be read by the statement that locks them, as it gives them as they are once it has the lock.
 *
 * Order, the same in every batch:
 *
 *   1. keys of signals, sent or waited on: advisory locks, in the order of their hashes
 *   2. queues of starts, of requeues and of hand-backs: FOR KEY SHARE, by name
 *   3. runs: FOR NO KEY UPDATE, by id: those that commands name (fenced, cancelled, requeued), the runs that a suspension
 *      waits for, those that wait for a signal that is sent, and the unended descendants of those that may be cancelled
 *      with whoever waits for them
 *   4. keys of the KV space: FOR UPDATE, by key
 *   5. runs that only a look under these locks shows (parents that wait for a run that ends, children that were
 *      started meanwhile), by id; again until there are none
 *   6. new rows, by key; then rows of lanes (lanes.ts), and receipts
 *
 * Step 5, names of queues that are not registered, and two batches that insert the same keys may break the order: two
 * that wait for each other then end by the lock timeout (50 ms), and are tried again in smaller parts (commit.ts).
 *
 * What others do between any two of our statements:
 *
 * - Fences (checkpoint, settle, perform, wait, expire). The row is locked before it is read, so a claim, a renewal, a
 *   reclaim or a cancellation either has committed, and is seen, or waits until this batch has. History and waits of
 *   a run change only under the lock of its row.
 * - A suspension and the end of a run it waits for. Both lock the row of the run that is waited for. Whoever comes
 *   second sees what the first has done: the end finds the wait, as it looks for waits in a statement after the lock;
 *   or the suspension finds the run ended.
 * - A wait and a signal, or two waits on one key. Both take the lock of the key first; the waits open on it and the signal
 *   kept for it are read afterwards. Waits open only under the lock of their key. They close under the lock of their run alone,
 *   which a signal takes as well, before it reads the waits.
 * - Two starts of one id, or of one deduplication id. Neither sees the other's row, and there is nothing to lock: the
 *   second waits in its insert, which then adds fewer rows than it should, and is run again over what is there now
 *   (`Interference`). A run that is there, or holds the id, is only read: it may have ended by the time the answer
 *   arrives, as after any answer. A requeue that takes back an id meets the same index; its error is Interference as well.
 * - Two compare-and-puts of a new key: alike. Of a key that is there, the second waits for the lock and compares with what the first left.
 * - The same command twice at once (a resend while the first try is still under way): starts meet by id; operations by the lock
 *   of their run, whose row has the id of the command; signals and changes of values in the insert of their receipts.
 * - Cancel of a run with children: a child is started under the lock of its parent's row (it is the parent that starts
 *   it). So after that lock all children are there to be found, and the look of step 5 goes on until every
 *   descendant it finds is locked: those not PENDING end, the others are asked, and end by their own settlement or reclaim.
 * - Requeue moves the history from the first failure on to the past in one statement, under the lock of the run.
 * - A change of a queue locks its row FOR UPDATE and derives the places of its runs anew. A start, a requeue or a hand-back holds
 *   the row FOR KEY SHARE from before it reads it, so the change either is seen, or waits and then finds the new run. A queue that
 *   is not registered has no row: a start that finds none takes a shared advisory lock on its name (`UNREGISTERED`) and looks
 *   again; a registration takes the exclusive one.
 * - A start in a lane whose row a claim is about to delete as empty: `addStarts` holds the row FOR KEY SHARE, which the
 *   deletion conflicts with, or waits for the deletion and adds the row again.
 * - A settlement in a lane that a claim has just found full: `openLanes` comes after the rows of runs are written and locks the
 *   rows of the lane; the claim locks them before it counts. Whoever is second sees the first.
 * - Commands of one batch see each other in memory, in their order. Only the difference between the rows as they were
 *   and as they are at last is written; rows that give up a unique key are written before those that take it.
 */
import { text } from '../../columns.ts'
import type { RunRecord } from '../../records.ts'
import { RUN_COLUMNS, toRun } from '../runs.ts'
import type { Transaction } from '../session.ts'
import { FAMILY } from './family.ts'
import type { Needs } from './needs.ts'

/**
 * A statement of its own, so that those after it see what its locks have waited for. Hashes of one schema and of another
 * are unlikely to be the same.
 */
export const LOCK_KEYS = `
select pg_catalog.pg_advisory_xact_lock(hash)
from (
  select distinct pg_catalog.hashtextextended(key, 'perdure.places'::pg_catalog.regclass::pg_catalog.oid::bigint) as hash
  from unnest($1::text[]) as k (key) order by hash) keys`

/** True, and evaluated once, before any run is looked for. $2: queues, $3: ids of runs whose queue is meant. */
const QUEUES_FIRST = `
(select pg_catalog.count(*) from (
  select q.name from perdure.queues q
  where q.name in (
    select unnest($2::text[])
    union
    select x.queue from unnest($3::text[]) as e (id)
    cross join lateral (select queue from perdure.runs where id = e.id offset 0) x)
  order by q.name for key share) locked) >= 0`

/** One by one in this order, as nothing else can be done with a lateral join that locks. */
const LOCKED = `
cross join lateral (select * from perdure.runs where id = asked.id for no key update) r`

export const LOCK_RUNS = `
select ${RUN_COLUMNS} from (select id from unnest($1::text[]) as a (id) order by id collate "C") asked ${LOCKED}`
export const LOCK_QUEUES_AND_RUNS = `
select ${RUN_COLUMNS}
from (select id from unnest($1::text[]) as a (id) where ${QUEUES_FIRST} order by id collate "C") asked ${LOCKED}`
/** $4: runs that may be cancelled, $5: keys of signals that are sent. */
export const LOCK_ALL = `
with recursive ${FAMILY(4)},
found (id) as materialized (
  select a.id collate "C" from unnest($1::text[]) as a (id) where ${QUEUES_FIRST}
  union
  select f.id from family f
  union
  select r.id from family f
  cross join lateral (select run from perdure.waits where type = 'child' and key = f.id offset 0) w
  cross join lateral (select id from perdure.runs where seq = w.run offset 0) r
  union
  select r.id from unnest($5::text[]) as s (key)
  cross join lateral (
    select run from perdure.waits where type = 'signal' and state = 'open' and key = s.key offset 0) w
  cross join lateral (select id from perdure.runs where seq = w.run offset 0) r)
select ${RUN_COLUMNS} from (select id from found order by id collate "C") asked ${LOCKED}`

/** Takes the locks of steps 1 to 3, and answers with the runs as they are under them. */
export async function lockFirst(transaction: Transaction, needs: Needs): Promise<readonly RunRecord[]> {
  const { runs, queues, enqueued, signals, waits, cancelled } = needs
  if (signals.size > 0 || waits.size > 0) await transaction.query(LOCK_KEYS, [[...signals, ...waits]])
  const ids = [...runs]
  if (cancelled.size > 0 || signals.size > 0) {
    const values = [ids, [...queues], [...enqueued], [...cancelled], [...signals]]
    return (await transaction.query(LOCK_ALL, values)).map(toRun)
  }
  if (ids.length === 0) return []
  if (queues.size === 0 && enqueued.size === 0) return await lockRuns(transaction, ids)
  return (await transaction.query(LOCK_QUEUES_AND_RUNS, [ids, [...queues], [...enqueued]])).map(toRun)
}

export async function lockRuns(transaction: Transaction, ids: readonly string[]): Promise<readonly RunRecord[]> {
  return (await transaction.query(LOCK_RUNS, [ids])).map(toRun)
}

export const LOCK_VALUES = `
select v.key, v.hash from (select key from unnest($1::text[]) as a (key) order by key collate "C") asked
cross join lateral (select * from perdure.kv where key = asked.key for update) v`

/** What the keys hold, of those that hold something. */
export async function lockValues(
  transaction: Transaction,
  keys: Iterable<string>,
): Promise<readonly { readonly key: string; readonly hash: string }[]> {
  const rows = await transaction.query(LOCK_VALUES, [[...keys]])
  return rows.map((row) => ({ key: text(row[0]), hash: text(row[1]) }))
}
