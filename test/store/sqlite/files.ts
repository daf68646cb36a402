/** Files and stores for tests, in a directory of their own that goes when the test ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import type { NewRun, Store } from '../../../src/store/contract.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'

export function emptyDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'perdure-sqlite-'))
}

/** A path where no file is yet. */
export function freshPath(): string {
  const directory = emptyDirectory()
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return join(directory, 'store.db')
}

export async function openStore(path: string, clock?: Clock): Promise<Store> {
  const store = sqlite(path, clock === undefined ? {} : { clock })
  await store.open()
  onTestFinished(() => store.close())
  return store
}

export function newRun(id: string, run: Partial<NewRun> = {}): NewRun {
  return {
    id,
    definition: 'convert',
    kind: 'workflow',
    queue: null,
    input: '"intro"',
    inputHash: 'hash',
    maxRecoveries: 50,
    timeoutMs: null,
    claim: null,
    ...run,
  }
}

export async function enqueue(store: Store, ...runs: readonly NewRun[]): Promise<void> {
  await store.commit([{ type: 'enqueue', commandId: `command of ${runs[0]?.id}`, runs }])
}
