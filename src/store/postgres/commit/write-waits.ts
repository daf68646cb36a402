/** What runs wait for, and signals that are kept for those who will. */
import type { Transaction } from '../session.ts'
import type { WorkingSet } from './working-set.ts'

/** $1 and $2: waits for signals, $3: runs that wait for nothing any more. */
export const DELETE_WAITS = `
with waitless as (delete from perdure.waits where run = any($3::bigint[]))
delete from perdure.waits w using unnest($1::bigint[], $2::bigint[]) as u (run, position)
where w.run = u.run and w.position = u.position and w.type = 'signal' and w.run <> all ($3::bigint[])`
/** Of those that were there before, the rows were deleted. */
export const INSERT_WAITS = `
insert into perdure.waits (run, position, type, key, state, payload)
select run, position, type, key, state, payload
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[])
  as u (run, position, type, key, state, payload)
on conflict do nothing`

interface WrittenWait {
  readonly run: number
  readonly position: number
  readonly type: 'signal' | 'child'
  readonly key: string
  readonly state: string
  readonly payload: string | null
}

/** Runs that are `written` have been taken care of, but for the waits that were read. */
export async function writeWaits(
  transaction: Transaction,
  { waits, waitless, runs }: WorkingSet,
  written: ReadonlySet<number>,
): Promise<void> {
  const cleared = [...waitless].filter((run) => !written.has(run))
  const touched: { readonly run: number; readonly position: number }[] = []
  const kept: WrittenWait[] = []
  for (const [id, positions] of waits.touched) {
    const run = runs.at(id).seq
    for (const position of positions) {
      touched.push({ run, position })
      const wait = waits.at(id, position)
      if (wait !== undefined) kept.push({ ...wait, run })
    }
  }
  for (const [id, awaited] of waits.suspended) {
    const run = runs.at(id).seq
    for (const { position, runId } of awaited) {
      kept.push({ run, position, type: 'child', key: runId, state: 'open', payload: null })
    }
  }
  const deletes = touched.length > 0 || cleared.length > 0
  await Promise.all([
    deletes
      ? transaction.query(DELETE_WAITS, [
          touched.map(({ run }) => run),
          touched.map(({ position }) => position),
          cleared,
        ])
      : null,
    kept.length > 0
      ? transaction.query(INSERT_WAITS, [
          kept.map(({ run }) => run),
          kept.map(({ position }) => position),
          kept.map(({ type }) => type),
          kept.map(({ key }) => key),
          kept.map(({ state }) => state),
          kept.map(({ payload }) => payload),
        ])
      : null,
  ])
}

/** $1: keys of signals that were taken, $2 and $3: signals that are kept. */
export const WRITE_SIGNALS = `
with taken as (delete from perdure.signals where key = any($1::text[]))
insert into perdure.signals (key, payload) select key, payload from unnest($2::text[], $3::text[]) as u (key, payload)
on conflict (key) do update set payload = excluded.payload`

export async function writeSignals(transaction: Transaction, { waits }: WorkingSet): Promise<void> {
  if (waits.touchedKeys.size === 0) return
  const taken: string[] = []
  const keys: string[] = []
  const payloads: string[] = []
  for (const key of waits.touchedKeys) {
    const payload = waits.bufferedOf(key)
    if (payload === undefined) taken.push(key)
    else {
      keys.push(key)
      payloads.push(payload)
    }
  }
  await transaction.query(WRITE_SIGNALS, [taken, keys, payloads])
}
