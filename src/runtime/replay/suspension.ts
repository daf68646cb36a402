/**
 * Suspension: calls that only wait (for a time, a signal, the end of a child) are *parked*. When nothing but parked calls
 * is outstanding and the next of their instants is not near, the pass is dropped, and the store wakes the run when one
 * of them has come: it decides in one command whether that is so already, so no wake-up is lost.
 *
 * A suspension costs two commits and a replay, so it is not rushed: what comes soon is waited for in memory.
 */
import type { Clock, EpochMs } from '../../core/clock.ts'
import type { Scheduler } from '../../core/scheduler.ts'
import type { AwaitedRun } from '../../store/commands.ts'

/** What a call waits for outside the pass. */
export interface Parked {
  /** An instant and nothing else, a signal, or the end of a run. */
  readonly awaits: 'time' | 'signal' | { readonly runId: string }
  /** How long at most; null: for ever. */
  readonly wakeAt: EpochMs | null
  /** Disarms its timer and stops its listening. */
  release(): void
}

/** What a suspended run waits for, beside the signals that the store knows of. */
export interface Wakers {
  readonly wakeAt: EpochMs | null
  readonly children: readonly AwaitedRun[]
}

/** A run whose next instant is further away than this is suspended. */
const LONGEST_WAIT_IN_MEMORY_MS = 1_000
/** A body that has called nothing when it was moved may be at a short await that is not durable. */
const GRACE_FOR_BODY_MS = 250
/** A signal that is answered, a child that has little to do: these are often quick. */
const GRACE_FOR_OTHERS_MS = 100

export class Suspension {
  readonly #clock: Clock
  readonly #scheduler: Scheduler
  readonly #poke: () => void
  readonly #parked = new Map<number, Parked>()
  /** Of the standstill that lasts now: one is given, however often the pass looks meanwhile. */
  #grace: { over: boolean; cancel(): void } | undefined

  /** `poke` makes the pass look again. */
  constructor({ clock, scheduler }: { readonly clock: Clock; readonly scheduler: Scheduler }, poke: () => void) {
    this.#clock = clock
    this.#scheduler = scheduler
    this.#poke = poke
  }

  /** Calls that are parked. */
  get size(): number {
    return this.#parked.size
  }

  park(position: number, parked: Parked): void {
    this.leave(position)
    this.#parked.set(position, parked)
  }

  /** The call is parked no more, if it was. */
  leave(position: number): void {
    const parked = this.#parked.get(position)
    if (parked === undefined) return
    this.#parked.delete(position)
    parked.release()
  }

  /** The body moves: a standstill that comes now is another one. */
  moved(): void {
    this.#grace?.cancel()
    this.#grace = undefined
  }

  /**
   * What the run shall be suspended for, of a pass that stands still with nothing but parked calls outstanding; undefined
   * if it had better wait. `called`: the body has made calls when it was moved last.
   */
  due({ called }: { readonly called: boolean }): Wakers | undefined {
    const wakers = this.#wakers()
    const { wakeAt } = wakers
    if (wakeAt !== null && wakeAt - this.#clock.now() <= LONGEST_WAIT_IN_MEMORY_MS) return undefined
    const graceMs = called ? this.#graceForOthers() : GRACE_FOR_BODY_MS
    return graceMs === 0 || this.#graceIsOver(graceMs) ? wakers : undefined
  }

  /** Lets go of everything that was armed. */
  close(): void {
    this.moved()
    for (const position of [...this.#parked.keys()]) this.leave(position)
  }

  #wakers(): Wakers {
    let wakeAt = Number.POSITIVE_INFINITY
    const children: AwaitedRun[] = []
    for (const [position, parked] of this.#parked) {
      const { awaits } = parked
      wakeAt = Math.min(wakeAt, parked.wakeAt ?? Number.POSITIVE_INFINITY)
      if (typeof awaits === 'object') children.push({ position, runId: awaits.runId })
    }
    return { wakeAt: wakeAt === Number.POSITIVE_INFINITY ? null : wakeAt, children }
  }

  /** A mock clock doesn't wait for real time, and a test that looks after an `advance` sees the run suspended. */
  #graceForOthers(): number {
    if (this.#clock.kind === 'mock') return 0
    for (const { awaits } of this.#parked.values()) if (awaits !== 'time') return GRACE_FOR_OTHERS_MS
    return 0
  }

  #graceIsOver(graceMs: number): boolean {
    if (this.#grace === undefined) {
      const grace = { over: false, cancel: () => timer.cancel() }
      const timer = this.#scheduler.after(graceMs, () => {
        grace.over = true
        this.#poke()
      })
      this.#grace = grace
    }
    return this.#grace.over
  }
}
