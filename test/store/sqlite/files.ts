/** Files and stores for tests, in a directory of their own that goes when the test ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import type { Store } from '../../../src/store/contract.ts'
import type { Connection } from '../../../src/store/sqlite/driver.ts'
import { loadDriver } from '../../../src/store/sqlite/drivers/load.ts'
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

/** A connection beside those of the store, by the same driver. */
export async function connect(path: string): Promise<Connection> {
  const driver = await loadDriver('a test')
  return driver.connect(path, { readOnly: false })
}

export async function openStore(path: string, clock?: Clock): Promise<Store> {
  const store = sqlite(path, clock === undefined ? {} : { clock })
  await store.open()
  onTestFinished(() => store.close())
  return store
}
