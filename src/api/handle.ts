/** Handles: how anybody, in any process, looks at a run, waits for it, and cancels it. */
import type { Timer } from '../core/clock.ts'
import type { Codec } from '../core/codec.ts'
import { type Duration, toMs } from '../core/duration.ts'
import { RunNotFoundError, StoreClosedError, TimeoutError } from '../core/errors.ts'
import { checkOptions } from '../core/options.ts'
import { failureError } from '../runtime/failure.ts'
import type { Hub } from '../runtime/hub.ts'
import type { Ended } from '../runtime/waiter.ts'
import type { Ending, RunStatus } from '../store/records.ts'

/** How a run has ended. */
export type RunResult<O> = { readonly ok: true; readonly output: O } | { readonly ok: false; readonly error: Error }

/**
 * A run, from outside. Awaiting it is `await handle.result()`; a handle itself is not thenable. It stays valid
 * across restarts: `engine.handle(definition, id)` makes it anew from the id.
 */
export interface Handle<O> {
  readonly id: string
  /**
   * True if the call that gave this handle started the run; false if the run existed, had the `dedupId` that was asked for,
   * or was only looked up.
   */
  readonly newlySubmitted: boolean
  /** @throws RunNotFoundError */
  status(): Promise<RunStatus>
  /**
   * Waits for the end of the run, whichever process runs it; resolves with its output. Any number of waits, in one
   * process, costs one query at a time. `timeout` is real time; when it is over the run goes on.
   *
   * @throws RunFailedError if it ended ERROR or DEAD, with `kind`, `attempts`, and the error thrown as `cause`.
   * @throws RunCancelledError if it was cancelled, with the `reason`.
   * @throws RunNotFoundError if there is no such run.
   * @throws TimeoutError when `timeout` is over.
   */
  result(options?: { readonly timeout?: Duration }): Promise<O>
  /** How it has ended; undefined if it has not ended, or does not exist. */
  fetchResult(): Promise<RunResult<O> | undefined>
  /**
   * Ends a run that is not running at once, and asks one that runs to end: its steps' signals are aborted, its body
   * does not go on, and it is CANCELLED when they have ended. Runs that its body started are cancelled with it, unless they
   * were started detached. False if it has ended, is unknown, or was asked before.
   */
  cancel(): Promise<boolean>
}

/** What a handle works through. */
export interface HandleHost {
  readonly codec: Codec
  /** The opened hub; opens it if need be. */
  hub(): Promise<Hub>
  cancel(id: string): Promise<boolean>
}

export class RunHandle<O> implements Handle<O> {
  readonly id: string
  readonly newlySubmitted: boolean
  readonly #host: HandleHost

  constructor(host: HandleHost, id: string, newlySubmitted: boolean) {
    this.#host = host
    this.id = id
    this.newlySubmitted = newlySubmitted
  }

  async status(): Promise<RunStatus> {
    const { store } = await this.#host.hub()
    const [run] = await store.runs([this.id])
    if (run === undefined) throw new RunNotFoundError({ runId: this.id })
    return run.status
  }

  async result(options?: { readonly timeout?: Duration }): Promise<O> {
    const timeoutMs = options === undefined ? undefined : timeoutOf(options)
    const hub = await this.#host.hub()
    const ended = await this.#ended(hub, timeoutMs)
    if (ended === 'missing') throw new RunNotFoundError({ runId: this.id })
    if (ended === 'closed') throw new StoreClosedError({ store: hub.store.name })
    const result = await this.#resultOf(hub, ended)
    if (result.ok) return result.output
    throw result.error
  }

  async fetchResult(): Promise<RunResult<O> | undefined> {
    const hub = await this.#host.hub()
    const ended = (await hub.store.endings([this.id])).get(this.id)
    return ended === undefined || ended === 'missing' ? undefined : this.#resultOf(hub, ended)
  }

  cancel(): Promise<boolean> {
    return this.#host.cancel(this.id)
  }

  #ended(hub: Hub, timeoutMs: number | undefined): Promise<Ended> {
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined
      const stop = hub.waiter.listen(this.id, (ended) => {
        timer?.cancel()
        resolve(ended)
      })
      if (timeoutMs === undefined) return
      timer = hub.scheduler.after(timeoutMs, () => {
        void this.#lastLook(hub).then((ended) => {
          stop()
          if (ended === undefined) reject(new TimeoutError({ runId: this.id, timeoutMs }))
          else resolve(ended)
        })
      })
    })
  }

  /** A run that has ended already is told so even by a wait that has no time. */
  async #lastLook(hub: Hub): Promise<Ended | undefined> {
    try {
      return (await hub.store.endings([this.id])).get(this.id)
    } catch {
      return undefined
    }
  }

  async #resultOf({ store }: Hub, ending: Ending): Promise<RunResult<O>> {
    const { codec } = this.#host
    // The stored output is what the definition's function, typed to give an O, returned.
    if (ending.status === 'SUCCESS') return { ok: true, output: codec.decode(ending.output) as O }
    const attempts = async (): Promise<number> => (await store.runs([this.id]))[0]?.attempt ?? 0
    return { ok: false, error: await failureError(this.id, ending, { codec, attempts }) }
  }
}

function timeoutOf(options: { readonly timeout?: Duration }): number | undefined {
  checkOptions('result', options, ['timeout'])
  return options.timeout === undefined ? undefined : toMs(options.timeout, 'result.timeout')
}
