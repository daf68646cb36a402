/**
 * Brings requests to cancel to the runs that this process has in hand: from others of this process by a notice, from
 * other processes, and for runs that are cancelled along with their parents, by asking the store whenever runs were
 * changed that nobody named.
 */
import type { HeldClaim } from '../store/contract.ts'
import type { Hub } from './hub.ts'

export interface CancelRequestsOptions {
  readonly hub: Hub
  readonly owner: string
  /** False: there is nothing in hand that could be cancelled. */
  readonly hasAny: () => boolean
  readonly onRequest: (token: string) => void
}

export class CancelRequests {
  readonly #options: CancelRequestsOptions
  #looking = false
  #wanted = false
  #activity = 0
  #stopListening: (() => void) | undefined

  constructor(options: CancelRequestsOptions) {
    this.#options = options
  }

  start(): void {
    this.#stopListening = this.#options.hub.notices.on((notice) => {
      if (notice.type === 'cancelRequested') this.#options.onRequest(notice.token)
      else if (notice.type === 'changed') void this.#look()
    })
  }

  stop(): void {
    this.#stopListening?.()
    this.#stopListening = undefined
  }

  busy(): boolean {
    return this.#looking
  }

  activity(): number {
    return this.#activity
  }

  /** One question at a time, and one more if there was a change meanwhile. */
  async #look(): Promise<void> {
    this.#wanted = true
    if (this.#looking || !this.#options.hasAny()) return
    this.#looking = true
    while (this.#wanted && this.#stopListening !== undefined) {
      this.#wanted = false
      this.#activity += 1
      for (const { token } of await this.#ask()) this.#options.onRequest(token)
    }
    this.#looking = false
  }

  /** Trouble with the store is told by those who can't do without it, and the renewal of a lease tells again. */
  #ask(): Promise<readonly HeldClaim[]> {
    const { hub, owner } = this.#options
    return hub.store.cancelRequests(owner).catch(() => [])
  }
}
