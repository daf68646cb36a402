/**
 * Notices what other connections commit: SQLite counts their commits in `PRAGMA data_version`, and looking at the
 * counter costs microseconds. Runs only while somebody watches, and keeps no process alive.
 *
 * The lease thread has a connection of its own, so its renewals count as a change, too: a spurious call every third
 * of a lease.
 */
import type { Timer } from '../../core/clock.ts'
import { Emitter } from '../../core/events.ts'
import { realScheduler } from '../../core/scheduler.ts'
import { number } from '../columns.ts'
import type { Database } from './database.ts'

const LOOK_EVERY_MS = 25
export const DATA_VERSION = 'pragma data_version'

export class Watch {
  readonly #database: Database
  readonly #changes = new Emitter<void>()
  #version = 0
  #timer: Timer | undefined

  constructor(database: Database) {
    this.#database = database
  }

  /** Returns the way to stop. */
  on(onChange: () => void): () => void {
    // A listener of its own for each call, so that one function may watch twice.
    const off = this.#changes.on(() => onChange())
    if (this.#timer === undefined) {
      this.#version = this.#look() ?? 0
      this.#arm()
    }
    return () => {
      off()
      if (this.#changes.size === 0) this.stop()
    }
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer = realScheduler.after(LOOK_EVERY_MS, () => this.#tick(), { background: true })
  }

  #tick(): void {
    this.#arm()
    const version = this.#look()
    if (version === undefined || version === this.#version) return
    this.#version = version
    this.#changes.emit()
  }

  /** undefined: the file can't be read at the moment. Whoever calls the store is told; here the next look will do. */
  #look(): number | undefined {
    try {
      return number(this.#database.prepare(DATA_VERSION).get()?.[0])
    } catch {
      return undefined
    }
  }
}
