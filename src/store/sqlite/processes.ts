/** Live processes that claim runs. */

import { number, text, textOrNull, UnreadableValueError } from '../columns.ts'
import type { ProcessRecord } from '../records.ts'
import type { Database } from './database.ts'

const REGISTER = `
insert or replace into perdure_processes (owner, host, pid, pid_start, boot_id, pid_namespace, definitions, queues,
  version, registered_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export function registerProcess(database: Database, process: Omit<ProcessRecord, 'registeredAt'>): void {
  const { owner, host, pid, pidStart, bootId, pidNamespace, version } = process
  const [definitions, queues] = [JSON.stringify(process.definitions), JSON.stringify(process.queues)]
  database
    .prepare(REGISTER)
    .run(owner, host, pid, pidStart, bootId, pidNamespace, definitions, queues, version, database.clock.now())
}

export const REMOVE = `
delete from perdure_processes where owner = ? and not exists (
  select 1 from perdure_runs indexed by perdure_runs_claims where status = 'PENDING' and perdure_runs.owner = ?)`

export function removeProcesses(database: Database, owners: readonly string[]): void {
  for (const owner of owners) database.prepare(REMOVE).run(owner, owner)
}

const PROCESSES = `
select owner, host, pid, pid_start, boot_id, pid_namespace, definitions, queues, version, registered_at
from perdure_processes`

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
      definitions: names(text(row[6])),
      queues: names(text(row[7])),
      version: textOrNull(row[8]),
      registeredAt: number(row[9]),
    }))
}

function names(json: string): readonly string[] {
  const stored: unknown = JSON.parse(json)
  if (!Array.isArray(stored)) throw new UnreadableValueError(`expected a list of names in a column, found ${json}`)
  return stored.map(text)
}
