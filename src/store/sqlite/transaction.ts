/** What the commands of one transaction share: its instant, the queues as they are, and what else it has changed. */
import type { EpochMs } from '../../core/clock.ts'
import type { QueueRecord } from '../records.ts'
import type { Database } from './database.ts'
import type { Statement } from './driver.ts'
import { findQueue } from './queues.ts'
import { firstFreePlace } from './runs.ts'

export class Transaction {
  readonly database: Database
  readonly now: EpochMs
  /** Changes so far to other runs than the one that a command is about. */
  ripples = 0
  #lastPlace: number | undefined
  readonly #queues = new Map<string, QueueRecord | null>()

  /** To be called within the transaction: its instant comes after its locks. */
  constructor(database: Database) {
    this.database = database
    this.now = database.clock.now()
  }

  prepare(sql: string): Statement {
    return this.database.prepare(sql)
  }

  /** A place that no run has, or has had. */
  nextPlace(): number {
    this.#lastPlace = this.#lastPlace === undefined ? firstFreePlace(this.database) : this.#lastPlace + 1
    return this.#lastPlace
  }

  /** null: the internal queue, or one that is not registered. */
  queue(name: string | null): QueueRecord | null {
    if (name === null) return null
    const known = this.#queues.get(name)
    if (known !== undefined) return known
    const queue = findQueue(this.database, name) ?? null
    this.#queues.set(name, queue)
    return queue
  }
}
