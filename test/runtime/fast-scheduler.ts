/** A scheduler whose real-time waits pass at once, in order, while its clock counts them; turns are the event loop's. */
import type { Timer } from '../../src/core/clock.ts'
import type { Scheduler } from '../../src/core/scheduler.ts'

export class FastScheduler implements Scheduler {
  /** Every delay that was waited for. */
  readonly delays: number[] = []
  /** Set: waits don't pass until `pass`. */
  held = false
  readonly #waiting = new Set<{ readonly at: number; readonly callback: () => void }>()
  #now = 0
  #draining = false

  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  onTurn(callback: () => void): void {
    setImmediate(callback)
  }

  afterMicrotasks(callback: () => void): void {
    process.nextTick(callback)
  }

  after(delayMs: number, callback: () => void): Timer {
    const wait = { at: this.#now + delayMs, callback }
    this.delays.push(delayMs)
    this.#waiting.add(wait)
    if (!this.held) this.#drainSoon()
    return { cancel: () => void this.#waiting.delete(wait) }
  }

  monotonic(): number {
    return this.#now
  }

  get armed(): number {
    return this.#waiting.size
  }

  /** Lets `ms` pass at once; what was due fires, in order. */
  pass(ms: number): void {
    const until = this.#now + ms
    for (let next = this.#next(); next !== undefined && next.at <= until; next = this.#next()) this.#fire(next)
    this.#now = until
  }

  #drainSoon(): void {
    if (this.#draining) return
    this.#draining = true
    setImmediate(() => {
      this.#draining = false
      const next = this.#next()
      if (next !== undefined) this.#fire(next)
      if (this.#waiting.size > 0) this.#drainSoon()
    })
  }

  #next(): { readonly at: number; readonly callback: () => void } | undefined {
    return [...this.#waiting].sort((a, b) => a.at - b.at)[0]
  }

  #fire(wait: { readonly at: number; readonly callback: () => void }): void {
    this.#waiting.delete(wait)
    this.#now = Math.max(this.#now, wait.at)
    wait.callback()
  }
}

/** Waits, turn by turn, until the condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns += 1) {
    if (turns > 100_000) throw new Error('the condition never held')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export async function turns(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await new Promise((resolve) => setImmediate(resolve))
}
