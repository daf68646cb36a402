/** The lease lane: renewing claims, taking away those that ended, and the processes that hold them. */
import type { EpochMs } from '../../core/clock.ts'
import type { HeldClaim, ReclaimedRun, ReclaimRequest, RenewOutcome } from '../contract.ts'
import type { ProcessRecord } from '../records.ts'
import * as transitions from '../transitions.ts'
import { flag, number, numberOrNull, text, textOrNull } from './columns.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'
import { applyTransition, RUN_COLUMNS, toRun } from './runs.ts'

/** A lease that has ended but was not taken away can still be renewed: expiry alone takes nothing. */
export const RENEW = `
update perdure_runs set lease_until = ? where id = ? and status = 'PENDING' and token = ?
returning cancel_requested`

export function renew(database: Database, claims: readonly HeldClaim[], leaseMs: number): RenewOutcome {
  const leaseUntil = database.clock.now() + leaseMs
  const statement = database.prepare(RENEW)
  const lost: string[] = []
  const cancelRequested: string[] = []
  for (const { runId, token } of claims) {
    const row = statement.get(leaseUntil, runId, token)
    if (row === undefined) lost.push(token)
    else if (flag(row[0])) cancelRequested.push(token)
  }
  return { lost, cancelRequested }
}

/** More would block the event loop for too long. */
const MOST_RECLAIMED = 200

export const EXPIRED = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_leases
where status = 'PENDING' and lease_until <= ? order by lease_until limit ?`
export const HELD_BY = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and owner = ? order by token limit ?`

/** True if `reclaim` would take anything. */
export function isReclaimable(database: Database, { deadOwners }: ReclaimRequest): boolean {
  const expiry = nextExpiry(database)
  if (expiry !== null && expiry <= database.clock.now()) return true
  return deadOwners.some((owner) => database.prepare(HELD_BY).get(owner, 1) !== undefined)
}

/** Inside a transaction. */
export function reclaim(database: Database, { deadOwners, limit }: ReclaimRequest): readonly ReclaimedRun[] {
  const now = database.clock.now()
  const most = Math.min(limit, MOST_RECLAIMED)
  const rows: Row[] = []
  for (const owner of deadOwners) rows.push(...database.prepare(HELD_BY).all(owner, most))
  rows.push(...database.prepare(EXPIRED).all(now, most))
  const runs = new Map(rows.map((row) => [number(row[0]), toRun(row)]))
  return [...runs.values()].slice(0, most).map((run) => {
    const transition = transitions.reclaim(run, now)
    const { status } = applyTransition(database, transition)
    return { id: run.id, token: text(run.token), owner: run.owner, status, ending: transition.ending }
  })
}

export const NEXT_EXPIRY = `
select min(lease_until) from perdure_runs indexed by perdure_runs_leases where status = 'PENDING'`

export function nextExpiry(database: Database): EpochMs | null {
  return numberOrNull(database.prepare(NEXT_EXPIRY).get()?.[0] ?? null)
}

export const CANCEL_REQUESTS = `
select id, token from perdure_runs indexed by perdure_runs_cancels
where status = 'PENDING' and cancel_requested = 1 and owner = ?`

export function cancelRequests(database: Database, owner: string): readonly HeldClaim[] {
  const rows = database.prepare(CANCEL_REQUESTS).all(owner)
  return rows.map((row) => ({ runId: text(row[0]), token: text(row[1]) }))
}

const REGISTER = `
insert or replace into perdure_processes (owner, host, pid, pid_start, boot_id, pid_namespace, registered_at)
values (?, ?, ?, ?, ?, ?, ?)`

export function registerProcess(database: Database, process: Omit<ProcessRecord, 'registeredAt'>): void {
  const { owner, host, pid, pidStart, bootId, pidNamespace } = process
  database.prepare(REGISTER).run(owner, host, pid, pidStart, bootId, pidNamespace, database.clock.now())
}

export const REMOVE = `
delete from perdure_processes where owner = ? and not exists (
  select 1 from perdure_runs indexed by perdure_runs_claims where status = 'PENDING' and perdure_runs.owner = ?)`

export function removeProcesses(database: Database, owners: readonly string[]): void {
  for (const owner of owners) database.prepare(REMOVE).run(owner, owner)
}

const PROCESSES = `
select owner, host, pid, pid_start, boot_id, pid_namespace, registered_at from perdure_processes`

export function processes(database: Database): readonly ProcessRecord[] {
  return database
    .prepare(PROCESSES)
    .all()
    .map((row) => ({
      owner: text(row[0]),
      host: text(row[1]),
      pid: number(row[2]),
      pidStart: textOrNull(row[3]),
      bootId: textOrNull(row[4]),
      pidNamespace: textOrNull(row[5]),
      registeredAt: number(row[6]),
    }))
}
