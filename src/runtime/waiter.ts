/**
 * Waits for what the store will tell some day, for everybody in this process at once: however many results are awaited,
 * from however many handles, one query asks for all of them.
 *
 * What this process is told of by a notice costs no query. A query is made for what somebody has just begun to wait for
 * (that alone), and for all when another process has changed the store, at most once a pause, and as a fallback every
 * few seconds.
 */
import type { Timer } from '../core/clock.ts'
import type { Emitter } from '../core/events.ts'
import type { Scheduler } from '../core/scheduler.ts'
import type { Store } from '../store/contract.ts'
import type { EncodedValue, Ending } from '../store/records.ts'
import { detached } from './detached-context.ts'
import type { Notice } from './notices.ts'

/** How a wait for an end ends: `missing` if the store has no such run, `closed` if it was closed before. */
export type Ended = Ending | 'missing' | 'closed'

/** A wait for a signal, of a run, at a position. */
export interface SignalWait {
  readonly runId: string
  readonly position: number
}

export interface WaiterOptions<K, V> {
  /** The same for keys that mean the same. */
  readonly nameOf: (key: K) => string
  /** Answers for the keys that have an answer now. */
  readonly ask: (keys: readonly K[]) => Promise<Iterable<readonly [K, V]>>
  /** What is told to those who wait when the waiter stops, and to those who come later. */
  readonly closed: V
  /** Looks at what notices tell; 'changed' is seen to. */
  readonly hear: (notice: Notice, waiter: Waiter<K, V>) => void
  readonly scheduler: Scheduler
}

interface Wait<K, V> {
  readonly key: K
  readonly listeners: Set<(value: V) => void>
}

const FALLBACK_MS = 2_000
/** Changes by other processes may come in hundreds a second; the answers among them are asked for in bunches. */
const PAUSE_MS = 20

export class Waiter<K, V> {
  readonly #options: WaiterOptions<K, V>
  readonly #waits = new Map<string, Wait<K, V>>()
  /** Names that no query has asked for yet, or that have to be asked for again. */
  #fresh = new Set<string>()
  #askingForFresh = false
  #queries = 0
  /** Armed while anybody waits: for the end of a pause if there were changes, else for the fallback. */
  #timer: { readonly soon: boolean; readonly timer: Timer } | undefined
  #stopListening: (() => void) | undefined

  constructor(options: WaiterOptions<K, V>) {
    this.#options = options
  }

  start(notices: Emitter<Notice>): void {
    this.#stopListening = notices.on((notice) => {
      if (notice.type === 'changed') this.#arm(true)
      else this.#options.hear(notice, this)
    })
  }

  /** Ends all waits. */
  stop(): void {
    this.#stopListening?.()
    this.#stopListening = undefined
    for (const { key } of [...this.#waits.values()]) this.tell(key, this.#options.closed)
  }

  /** Keys that somebody waits for. */
  get waits(): number {
    return this.#waits.size
  }

  /** True while a query is under way or about to be made. */
  get busy(): boolean {
    return this.#askingForFresh || this.#queries > 0
  }

  /** Calls back once, when there is an answer, which may be soon. Returns the way to give up waiting. */
  listen(key: K, listener: (value: V) => void): () => void {
    if (this.#stopListening === undefined) {
      this.#options.scheduler.onTurn(() => listener(this.#options.closed))
      return () => {}
    }
    const name = this.#options.nameOf(key)
    const wait = this.#waits.get(name) ?? { key, listeners: new Set() }
    this.#waits.set(name, wait)
    wait.listeners.add(listener)
    this.#fresh.add(name)
    detached(() => {
      void this.#askForFresh()
      this.#arm(false)
    })
    return () => {
      wait.listeners.delete(listener)
      if (wait.listeners.size === 0 && this.#waits.get(name) === wait) this.#forget(name)
    }
  }

  /** The answer to everybody who waits for it. */
  tell(key: K, value: V): void {
    const name = this.#options.nameOf(key)
    const wait = this.#waits.get(name)
    if (wait === undefined) return
    this.#forget(name)
    for (const listener of wait.listeners) listener(value)
  }

  /** There may be answers for some of those that are waited for. */
  lookAgain(isMeant: (key: K) => boolean): void {
    for (const [name, { key }] of this.#waits) if (isMeant(key)) this.#fresh.add(name)
    if (this.#fresh.size > 0) detached(() => void this.#askForFresh())
  }

  #forget(name: string): void {
    this.#waits.delete(name)
    this.#fresh.delete(name)
    if (this.#waits.size === 0) this.#disarm()
  }

  async #askForFresh(): Promise<void> {
    if (this.#askingForFresh) return
    this.#askingForFresh = true
    await this.#options.scheduler.turn()
    while (this.#fresh.size > 0) {
      const keys = [...this.#fresh].flatMap((name) => this.#waits.get(name)?.key ?? [])
      this.#fresh = new Set()
      await this.#ask(keys)
    }
    this.#askingForFresh = false
  }

  async #ask(keys: readonly K[]): Promise<void> {
    this.#queries += 1
    try {
      for (const [key, value] of await this.#options.ask(keys)) this.tell(key, value)
    } catch {
      // The store can't be read now: the committer tells of that, and the fallback asks again.
    } finally {
      this.#queries -= 1
    }
  }

  #arm(soon: boolean): void {
    if (this.#waits.size === 0 || (this.#timer !== undefined && (this.#timer.soon || !soon))) return
    this.#disarm()
    const timer = this.#options.scheduler.after(soon ? PAUSE_MS : FALLBACK_MS, () => {
      this.#timer = undefined
      const keys = Array.from(this.#waits.values(), ({ key }) => key)
      void this.#ask(keys).then(() => this.#arm(false))
    })
    this.#timer = { soon, timer }
  }

  #disarm(): void {
    this.#timer?.timer.cancel()
    this.#timer = undefined
  }
}

/** Waits for runs to end, by their ids. */
export function endingWaiter(store: Pick<Store, 'endings'>, scheduler: Scheduler): Waiter<string, Ended> {
  return new Waiter<string, Ended>({
    nameOf: (runId) => runId,
    ask: (runIds) => store.endings(runIds),
    closed: 'closed',
    hear: (notice, waiter) => {
      if (notice.type === 'ended') waiter.tell(notice.runId, notice.ending)
    },
    scheduler,
  })
}

/** Waits for the payloads of signals; null: the store was closed before one came. */
export function signalWaiter(
  store: Pick<Store, 'signals'>,
  scheduler: Scheduler,
): Waiter<SignalWait, EncodedValue | null> {
  return new Waiter<SignalWait, EncodedValue | null>({
    nameOf: ({ runId, position }) => `${position} ${runId}`,
    ask: async (waits) => {
      const payloads = await store.signals(waits)
      return waits.flatMap((wait, index) => {
        const payload = payloads.get(index)
        return payload === undefined ? [] : [[wait, payload] as const]
      })
    },
    closed: null,
    hear: (notice, waiter) => {
      if (notice.type === 'signalled') waiter.lookAgain(({ runId }) => notice.runId === null || notice.runId === runId)
    },
    scheduler,
  })
}
