/** Claims for the tests of what becomes of them, made by direct starts. */
import type { Command, NewRun, Outcome } from '../../../src/store/contract.ts'
import { commit } from '../../../src/store/postgres/commit.ts'
import type { Database } from '../../../src/store/postgres/database.ts'

export const OWNER = 'worker 1'

export function newRun(id: string, run: Partial<NewRun> = {}): NewRun {
  return {
    id,
    definition: 'convert',
    kind: 'workflow',
    queue: null,
    priority: 0,
    partitionKey: null,
    dedup: null,
    due: null,
    input: '"intro"',
    inputHash: 'hash',
    maxRecoveries: 50,
    timeoutMs: null,
    parentId: null,
    kv: [],
    claim: null,
    ...run,
  }
}

export function tokenOf(id: string): string {
  return `token of ${id}`
}

/** As the store's clients call it. */
export function held(...ids: readonly string[]): readonly { readonly runId: string; readonly token: string }[] {
  return ids.map((runId) => ({ runId, token: tokenOf(runId) }))
}

export async function enqueue(database: Database, ...runs: readonly NewRun[]): Promise<void> {
  await commit(database, [{ type: 'enqueue', commandId: `command of ${runs[0]?.id}`, runs }])
}

/** A run that is claimed at once, for `leaseMs`. */
export function claimed(id: string, leaseMs = 60_000, run: Partial<NewRun> = {}): NewRun {
  return newRun(id, { claim: { token: tokenOf(id), owner: OWNER, leaseMs, version: null }, ...run })
}

export async function submit(database: Database, command: Command): Promise<Outcome | undefined> {
  const [outcome] = await commit(database, [command])
  return outcome
}
