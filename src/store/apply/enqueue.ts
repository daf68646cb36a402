/** Accepts runs: all of a command, or none. */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { startCaveat } from '../caveat.ts'
import type { AcceptedRun, EnqueueOutcome, NewRun, Refusal } from '../commands.ts'
import type { RunRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import type { Rows } from './rows.ts'

/** What a database would refuse by its constraints. */
export function checkStart(run: NewRun): void {
  const { id, maxRecoveries, timeoutMs, priority, due } = run
  invariant(Number.isSafeInteger(maxRecoveries), `run ${id}: maxRecoveries is no whole number`)
  invariant(timeoutMs === null || Number.isFinite(timeoutMs), `run ${id}: timeoutMs is no number`)
  invariant(Number.isSafeInteger(priority), `run ${id}: priority is no whole number`)
  invariant(due === null || Number.isFinite(due.type === 'at' ? due.instant : due.ms), `run ${id}: due is no number`)
}

export function enqueue(rows: Rows, runs: readonly NewRun[], startId: string, now: EpochMs): EnqueueOutcome {
  const standIns = standInsFor(rows, runs, startId)
  if (standIns.type !== 'found') return standIns
  const seen = new Set<string>()
  const accepted = runs.map((run, n): AcceptedRun => {
    const row = rows.runs.get(standIns.ids[n] ?? run.id) ?? accept(rows, run, startId, now)
    // One command may name a run twice: only the first of them creates it, in a resend too.
    const created = row.id === run.id && row.startId === startId && !seen.has(row.id)
    seen.add(row.id)
    return { id: row.id, created, status: row.status, caveat: startCaveat(row, rows.queue(row.queue)) }
  })
  return { type: 'accepted', runs: accepted }
}

/** The ids of the runs that the command will give for those that it asks for, or why it is refused as a whole. */
function standInsFor(
  rows: Rows,
  runs: readonly NewRun[],
  startId: string,
): { readonly type: 'found'; readonly ids: readonly string[] } | Refusal {
  const asked = new Map<string, { readonly run: NewRun; readonly standIn: string }>()
  /** Runs of this very command, by the deduplication id that they hold, or held when it came for the first time. */
  const own = new Map<string, string>()
  const ids: string[] = []
  for (const run of runs) {
    const row = rows.runs.get(run.id)
    const same = asked.get(run.id)
    const other = row ?? same?.run
    if (other !== undefined && (other.definition !== run.definition || other.inputHash !== run.inputHash)) {
      return { type: 'mismatch', id: run.id, definition: other.definition }
    }
    const slot = slotOf(run)
    const ownHolder = slot === null ? undefined : own.get(slot)
    const holder = other === undefined ? (ownHolder ?? holderOf(rows, run)) : undefined
    if (holder !== undefined && run.dedup?.policy === 'reject') return refusal(run, holder)
    const standIn = holder ?? same?.standIn ?? run.id
    ids.push(standIn)
    if (same !== undefined) continue
    asked.set(run.id, { run, standIn })
    const isOwn = standIn === run.id && (row === undefined || row.startId === startId)
    if (slot !== null && isOwn) own.set(slot, run.id)
  }
  return { type: 'found', ids }
}

function slotOf({ queue, dedup }: NewRun): string | null {
  return queue === null || dedup === null ? null : JSON.stringify([queue, dedup.id])
}

function holderOf(rows: Rows, { queue, dedup }: NewRun): string | undefined {
  return queue === null || dedup === null ? undefined : rows.runs.holderOf(queue, dedup.id)?.id
}

function refusal({ id, queue, dedup }: NewRun, holder: string): Refusal {
  invariant(queue !== null && dedup !== null, 'a run without a deduplication id was refused for it')
  return { type: 'deduplicated', id, queue, dedupId: dedup.id, holder }
}

function accept(rows: Rows, start: NewRun, startId: string, now: EpochMs): RunRecord {
  const queue = rows.queue(start.queue)
  const run = transitions.accept(start, { seq: rows.runs.nextSeq(), startId, queue }, now)
  rows.inputs.set(run.id, start.input)
  rows.runs.put(run)
  for (const put of start.kv) rows.kv.change(put)
  return run
}
