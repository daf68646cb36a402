/** How an engine or a client keeps the store open: from its first call that needs it until it is closed. */
import type { Hub } from '../runtime/hub.ts'

export class Connection {
  readonly #hub: Hub
  readonly #refusal: () => Error
  #joined: Promise<Hub> | undefined
  #sealed = false

  /** `refusal`: what a call is told that comes too late. */
  constructor(hub: Hub, refusal: () => Error) {
    this.#hub = hub
    this.#refusal = refusal
  }

  /** The opened hub; opens it if need be. After an opening that failed, the next call tries again. */
  open(): Promise<Hub> {
    if (this.#joined === undefined && this.#sealed) return Promise.reject(this.#refusal())
    this.#joined ??= this.#hub.acquire().then(
      () => this.#hub,
      async (error: unknown) => {
        this.#joined = undefined
        await this.#hub.release()
        throw error
      },
    )
    return this.#joined
  }

  /** Refuses calls that come too late. */
  assertOpen(): void {
    if (this.#sealed) throw this.#refusal()
  }

  /** It is not opened any more; one that is open stays so until `close`. */
  seal(): void {
    this.#sealed = true
  }

  /** Lets go of the hub; the last who does closes the store. */
  async close(): Promise<void> {
    this.seal()
    const joined = this.#joined
    this.#joined = undefined
    const opened = await joined?.catch(() => undefined)
    await opened?.release()
  }
}
