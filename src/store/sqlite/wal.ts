/**
 * Keeps the write-ahead log from growing without end. SQLite itself moves pages back into the database every 1,000
 * of them, but starts the log anew only when no reader is in the way; after a long one the file would stay large.
 */
import { statSync } from 'node:fs'
import { realScheduler } from '../../core/scheduler.ts'
import type { Database } from './database.ts'

export const LARGEST_WAL_BYTES = 64 * 1024 * 1024
const LOOK_EVERY_MS = 250

export class Wal {
  readonly #database: Database
  #lastLook = realScheduler.monotonic()
  #closed = false

  constructor(database: Database) {
    this.#database = database
  }

  /** To be called after a write. Looks at the file now and then, and truncates it in a later turn if it is too large. */
  written(): void {
    const now = realScheduler.monotonic()
    if (now - this.#lastLook < LOOK_EVERY_MS) return
    this.#lastLook = now
    const bytes = statSync(`${this.#database.path}-wal`, { throwIfNoEntry: false })?.size ?? 0
    if (bytes > LARGEST_WAL_BYTES) realScheduler.onTurn(() => this.#truncate())
  }

  close(): void {
    this.#closed = true
  }

  #truncate(): void {
    if (this.#closed) return
    try {
      this.#database.prepare('pragma wal_checkpoint(truncate)').all()
    } catch {
      // A reader or another checkpoint is in the way, or the disk is in trouble that the next write will tell of.
    }
  }
}
