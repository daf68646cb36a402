/**
 * What runs wait for, timers apart: signals, which are buffered if they come early, and the end of other runs.
 *
 * A wait for a signal is `open`, `signalled` or `expired`; of its key, at most one run has open ones. A wait for
 * another run is there only while the one that waits is suspended.
 */

import { number, text, textOrNull, word } from '../columns.ts'
import type { AwaitedRun, WaitOutcome } from '../commands.ts'
import type { EncodedValue, WaitRecord } from '../records.ts'
import type { Database } from './database.ts'

const toState = word(['open', 'signalled', 'expired'] as const)

/** A wait for a signal, of which the answer to who asks for it is made. */
export interface SignalWait {
  readonly state: 'open' | 'signalled' | 'expired'
  readonly payload: EncodedValue | null
}

export const WAIT_AT = `select state, payload from perdure_waits where run = ? and position = ? and type = 'signal'`

export function findWait(database: Database, run: number, position: number): SignalWait | undefined {
  const row = database.prepare(WAIT_AT).get(run, position)
  return row === undefined ? undefined : { state: toState(row[0]), payload: textOrNull(row[1]) }
}

export const SIGNAL_OF = `
select payload from perdure_runs r join perdure_waits w on w.run = r.seq
where r.id = ? and w.position = ? and w.type = 'signal' and w.state = 'signalled'`

/** The payload of a wait that a signal has resolved. */
export function findSignal(
  database: Database,
  { runId, position }: { readonly runId: string; readonly position: number },
): EncodedValue | undefined {
  const row = database.prepare(SIGNAL_OF).get(runId, position)
  return row === undefined ? undefined : text(row[0])
}

export const OPEN_WAITS = `
select run, position from perdure_waits indexed by perdure_waits_open
where type = 'signal' and state = 'open' and key = ?`

/** The open waits on a key, which are all of one run. */
export function findOpenWaits(
  database: Database,
  key: string,
): readonly { readonly run: number; readonly position: number }[] {
  const rows = database.prepare(OPEN_WAITS).all(key)
  return rows.map((row) => ({ run: number(row[0]), position: number(row[1]) }))
}

export const INSERT_WAIT = `
insert into perdure_waits (run, position, type, key, state, payload) values (?, ?, 'signal', ?, ?, ?)`
export const TAKE_SIGNAL = 'delete from perdure_signals where key = ? returning payload'

/** The caller has checked that no other run waits on the key. A buffered signal is taken at once. */
export function openWait(database: Database, run: number, position: number, key: string): SignalWait {
  const row = database.prepare(TAKE_SIGNAL).get(key)
  const payload = row === undefined ? null : text(row[0])
  const state = row === undefined ? 'open' : 'signalled'
  database.prepare(INSERT_WAIT).run(run, position, key, state, payload)
  return { state, payload }
}

export const RESOLVE_WAIT = `
update perdure_waits set state = ?, payload = ? where run = ? and position = ? and type = 'signal'`

export function resolveWait(
  database: Database,
  { run, position }: { readonly run: number; readonly position: number },
  { state, payload }: SignalWait,
): void {
  database.prepare(RESOLVE_WAIT).run(state, payload, run, position)
}

export function toOutcome({ state, payload }: SignalWait): WaitOutcome {
  if (state === 'open') return { type: 'waiting' }
  return state === 'expired' ? { type: 'expired' } : { type: 'signalled', payload: text(payload) }
}

export const BUFFERED = 'select 1 from perdure_signals where key = ?'
export const BUFFER = `
insert into perdure_signals (key, payload) values (?, ?) on conflict (key) do update set payload = excluded.payload`

/** True if it replaces a signal that nobody has waited for yet. */
export function bufferSignal(database: Database, key: string, payload: EncodedValue): boolean {
  const replaced = database.prepare(BUFFERED).get(key) !== undefined
  database.prepare(BUFFER).run(key, payload)
  return replaced
}

export const ANY_SIGNALLED = `select 1 from perdure_waits where run = ? and state = 'signalled' limit 1`

/** True if a signal has come for a wait of which the outcome is not recorded yet. */
export function hasSignalled(database: Database, run: number): boolean {
  return database.prepare(ANY_SIGNALLED).get(run) !== undefined
}

export const DELETE_WAIT = `delete from perdure_waits where run = ? and position = ? and type = 'signal'`

export function deleteWait(database: Database, run: number, position: number): void {
  database.prepare(DELETE_WAIT).run(run, position)
}

export const INSERT_AWAITED = `
insert or replace into perdure_waits (run, position, type, key, state) values (?, ?, 'child', ?, 'open')`

export function awaitRuns(database: Database, run: number, awaited: readonly AwaitedRun[]): void {
  for (const { position, runId } of awaited) database.prepare(INSERT_AWAITED).run(run, position, runId)
}

export const DELETE_AWAITED = `delete from perdure_waits where run = ? and type = 'child'`

export function forgetAwaited(database: Database, run: number): void {
  database.prepare(DELETE_AWAITED).run(run)
}

export const AWAITING = `
select run from perdure_waits indexed by perdure_waits_runs where type = 'child' and key = ?`

/** Places of the runs that wait for this one. */
export function findAwaiting(database: Database, runId: string): readonly number[] {
  return database
    .prepare(AWAITING)
    .all(runId)
    .map((row) => number(row[0]))
}

export const DELETE_WAITS = 'delete from perdure_waits where run = ?'

export function deleteWaits(database: Database, run: number): void {
  database.prepare(DELETE_WAITS).run(run)
}

export const WAITS_OF = `
select position, type, key, state, payload from perdure_waits where run = ? order by position`

/** In order of position. */
export function waitsOf(database: Database, run: { readonly seq: number; readonly id: string }): readonly WaitRecord[] {
  const rows = database.prepare(WAITS_OF).all(run.seq)
  return rows.map((row): WaitRecord => {
    const position = number(row[0])
    const key = text(row[2])
    if (row[1] === 'child') return { type: 'child', runId: run.id, position, childId: key }
    return { type: 'signal', runId: run.id, position, key, state: toState(row[3]), payload: textOrNull(row[4]) }
  })
}
