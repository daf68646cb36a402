/**
 * Waits for runs to end, for everybody in this process at once: however many results are awaited, from however many
 * handles, one query asks for all of them.
 *
 * A run that this process ends is told by a notice and costs no query. A query is made for runs that somebody has
 * just begun to wait for (those alone), and for all when another process has changed the store, at most once a pause,
 * and as a fallback every few seconds.
 */
import type { Timer } from '../core/clock.ts'
import type { Emitter } from '../core/events.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Store } from '../store/contract.ts'
import type { Ending } from '../store/records.ts'
import { detached } from './detached-context.ts'
import type { Notice } from './notices.ts'

/** How a wait ends: `missing` if the store has no such run, `closed` if it was closed before the run ended. */
export type Ended = Ending | 'missing' | 'closed'

type Listener = (ended: Ended) => void

const FALLBACK_MS = 2_000
/** Changes by other processes may come in hundreds a second; the endings among them are asked for in bunches. */
const PAUSE_MS = 20

export class Waiter {
  readonly #store: Store
  readonly #scheduler: Scheduler
  readonly #listeners = new Map<string, Set<Listener>>()
  /** Runs that no query has asked for yet. */
  #fresh = new Set<string>()
  #asking = false
  /** Armed while anybody waits: for the end of a pause if there were changes, else for the fallback. */
  #timer: { readonly soon: boolean; readonly timer: Timer } | undefined
  #stopListening: (() => void) | undefined

  constructor(store: Store, scheduler: Scheduler) {
    this.#store = store
    this.#scheduler = scheduler
  }

  start(notices: Emitter<Notice>): void {
    this.#stopListening = notices.on((notice) => {
      if (notice.type === 'ended') this.#tell(notice.runId, notice.ending)
      else if (notice.type === 'changed') this.#arm(true)
    })
  }

  /** Ends all waits. */
  stop(): void {
    this.#stopListening?.()
    this.#stopListening = undefined
    for (const runId of [...this.#listeners.keys()]) this.#tell(runId, 'closed')
  }

  /** Runs that somebody waits for. */
  get waits(): number {
    return this.#listeners.size
  }

  /** Calls back once, when the run has ended, which may be soon. Returns the way to give up waiting. */
  listen(runId: string, listener: Listener): () => void {
    if (this.#stopListening === undefined) {
      this.#scheduler.onTurn(() => listener('closed'))
      return () => {}
    }
    const listeners = this.#listeners.get(runId) ?? new Set()
    this.#listeners.set(runId, listeners)
    listeners.add(listener)
    this.#fresh.add(runId)
    detached(() => {
      void this.#askForFresh()
      this.#arm(false)
    })
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(runId) === listeners) this.#forget(runId)
    }
  }

  #tell(runId: string, ended: Ended): void {
    const listeners = this.#listeners.get(runId)
    if (listeners === undefined) return
    this.#forget(runId)
    for (const listener of listeners) listener(ended)
  }

  #forget(runId: string): void {
    this.#listeners.delete(runId)
    this.#fresh.delete(runId)
    if (this.#listeners.size === 0) this.#disarm()
  }

  async #askForFresh(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    await this.#scheduler.turn()
    while (this.#fresh.size > 0) {
      const runIds = [...this.#fresh]
      this.#fresh = new Set()
      await this.#ask(runIds)
    }
    this.#asking = false
  }

  async #ask(runIds: readonly string[]): Promise<void> {
    try {
      for (const [runId, ended] of await this.#store.endings(runIds)) this.#tell(runId, ended)
    } catch {
      // The store can't be read now: the committer tells of that, and the fallback asks again.
    }
  }

  #arm(soon: boolean): void {
    if (this.#listeners.size === 0 || (this.#timer !== undefined && (this.#timer.soon || !soon))) return
    this.#disarm()
    const timer = this.#scheduler.after(soon ? PAUSE_MS : FALLBACK_MS, () => {
      this.#timer = undefined
      void this.#ask([...this.#listeners.keys()]).then(() => this.#arm(false))
    })
    this.#timer = { soon, timer }
  }

  #disarm(): void {
    this.#timer?.timer.cancel()
    this.#timer = undefined
  }
}
