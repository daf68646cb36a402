/** A temporary folder with a file for the store and a journal beside it, and engines that end with their test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Journal } from './journal.ts'

export interface Place {
  readonly store: string
  readonly log: string
  readonly journal: Journal
}

export function place(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-crash-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const log = join(folder, 'journal')
  return { store: join(folder, 'store.db'), log, journal: new Journal(log) }
}
