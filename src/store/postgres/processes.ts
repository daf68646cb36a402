/** Live processes that claim runs. */
import { number, text, textOrNull, UnreadableValueError } from '../columns.ts'
import type { ProcessRecord } from '../records.ts'
import type { Database } from './database.ts'
import { readInstant } from './instant.ts'

export const REGISTER = `
insert into perdure.processes (owner, host, pid, pid_start, boot_id, pid_namespace, definitions, queues, version,
  registered_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (owner) do update set host = excluded.host, pid = excluded.pid, pid_start = excluded.pid_start,
  boot_id = excluded.boot_id, pid_namespace = excluded.pid_namespace, definitions = excluded.definitions,
  queues = excluded.queues, version = excluded.version, registered_at = excluded.registered_at`

export async function registerProcess(database: Database, process: Omit<ProcessRecord, 'registeredAt'>): Promise<void> {
  const { owner, host, pid, pidStart, bootId, pidNamespace, version } = process
  const [definitions, queues] = [JSON.stringify(process.definitions), JSON.stringify(process.queues)]
  await database.write(async (transaction) => {
    const now = await readInstant(transaction)
    const values = [owner, host, pid, pidStart, bootId, pidNamespace, definitions, queues, version, now]
    await transaction.query(REGISTER, values)
  })
}

/** A claim that is being made at this moment may be overlooked: then it ends with its lease, as any would. */
export const REMOVE = `
delete from perdure.processes p where p.owner = any($1::text[])
  and not exists (select 1 from perdure.runs r where r.status = 'PENDING' and r.owner = p.owner)`

export async function removeProcesses(database: Database, owners: readonly string[]): Promise<void> {
  if (owners.length === 0) return
  await database.write((transaction) => transaction.query(REMOVE, [owners]))
}

export const PROCESSES = `
select owner, host, pid, pid_start, boot_id, pid_namespace, definitions, queues, version, registered_at
from perdure.processes`

export async function processes(database: Database): Promise<readonly ProcessRecord[]> {
  const rows = await database.read((session) => session.query(PROCESSES))
  return rows.map((row) => ({
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
