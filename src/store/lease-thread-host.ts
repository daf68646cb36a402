/**
 * Starts the lease thread of a store and speaks for it in the main thread: passes on which claims are held, gives it the
 * signs of life that it goes by, and brings back what its renewals found.
 *
 * A burst of claims costs one message: it is posted when the microtasks of the moment have run, so before anything
 * that the caller does next can block the event loop.
 */
import { Worker } from 'node:worker_threads'
import type { Timer } from '../core/clock.ts'
import { realScheduler } from '../core/scheduler.ts'
import type { HeldClaim, LeaseThread, LeaseThreadOptions, RenewOutcome } from './contract.ts'

/** What every lease thread is started with, besides what its store needs. */
export interface ThreadTimes {
  readonly leaseMs: number
  readonly maxBlockedMs: number
  /** How often it looks whether a round is due and whether `heartbeat` has changed. */
  readonly lookEveryMs: number
  /** One counter, in shared memory. A count, not a time: the threads' clocks needn't agree. */
  readonly heartbeat: Int32Array
}

export interface ThreadOrder {
  readonly hold: readonly HeldClaim[]
  readonly drop: readonly string[]
  readonly stop: boolean
}

const LONGEST_LOOK_MS = 1_000

export class LeaseThreadHost implements LeaseThread {
  readonly #worker: Worker
  readonly #heartbeat = new Int32Array(new SharedArrayBuffer(4))
  readonly #beatEveryMs: number
  readonly #ended: Promise<void>
  #beat: Timer | undefined
  #hold = new Map<string, HeldClaim>()
  #drop = new Set<string>()
  #posting = false
  #stopping = false

  /** `data`: what the script needs besides `ThreadTimes`. */
  constructor(script: URL, data: object, { leaseMs, maxBlockedMs, onRenewed, onFailed }: LeaseThreadOptions) {
    this.#beatEveryMs = Math.min(LONGEST_LOOK_MS, leaseMs / 12, maxBlockedMs / 4)
    const times: ThreadTimes = {
      leaseMs,
      maxBlockedMs,
      lookEveryMs: this.#beatEveryMs,
      heartbeat: this.#heartbeat,
    }
    // The host's own flags (loaders, inspectors) are not for this thread.
    this.#worker = new Worker(script, { workerData: { ...data, ...times }, execArgv: [] })
    this.#worker.on('message', (outcome: RenewOutcome) => onRenewed(outcome))
    // After that: a listener for messages keeps the process alive again.
    this.#worker.unref()
    this.#ended = this.#untilEnded(onFailed)
    this.#armBeat()
  }

  hold(claims: readonly HeldClaim[]): void {
    for (const claim of claims) {
      this.#drop.delete(claim.token)
      this.#hold.set(claim.token, claim)
    }
    this.#postSoon()
  }

  drop(tokens: readonly string[]): void {
    for (const token of tokens) {
      // What the thread has not been told of it need not forget.
      if (!this.#hold.delete(token)) this.#drop.add(token)
    }
    this.#postSoon()
  }

  async stop(): Promise<void> {
    if (!this.#stopping) {
      this.#stopping = true
      this.#beat?.cancel()
      // Whoever awaits the end must live to see it.
      this.#worker.ref()
      this.#post({ hold: [], drop: [], stop: true })
    }
    await this.#ended
  }

  #untilEnded(onFailed: (error: unknown) => void): Promise<void> {
    return new Promise((resolve) => {
      let failure: unknown
      this.#worker.on('error', (error) => {
        failure = error
      })
      this.#worker.on('exit', (code) => {
        this.#beat?.cancel()
        resolve()
        if (this.#stopping) return
        this.#stopping = true
        onFailed(failure ?? new Error(`the lease thread ended with exit code ${code}`))
      })
    })
  }

  #armBeat(): void {
    const beat = (): void => {
      Atomics.add(this.#heartbeat, 0, 1)
      this.#armBeat()
    }
    this.#beat = realScheduler.after(this.#beatEveryMs, beat, { background: true })
  }

  #postSoon(): void {
    if (this.#posting) return
    this.#posting = true
    queueMicrotask(() => {
      this.#posting = false
      if (this.#stopping || this.#hold.size + this.#drop.size === 0) return
      this.#post({ hold: [...this.#hold.values()], drop: [...this.#drop], stop: false })
      this.#hold = new Map()
      this.#drop = new Set()
    })
  }

  #post(order: ThreadOrder): void {
    this.#worker.postMessage(order)
  }
}
