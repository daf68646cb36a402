/**
 * Runs claimed runs in this process: at most `maxConcurrent` at a time, counting every claim that is held and every
 * one that may be on its way (`reserve`), so that a claim never finds the process full.
 */
import { invariant } from '../core/invariant.ts'
import type { Claim, DeliveryOptions } from './delivery.ts'
import { Delivery } from './delivery.ts'
import { detached } from './detached-context.ts'
import type { Handler } from './handler.ts'
import { QueueLoads } from './queue-loads.ts'

/** Of a run that this process has in hand no more. */
export interface FreedSlot {
  readonly queue: string | null
  readonly lane: string
}

export interface ExecutorOptions extends DeliveryOptions {
  readonly handlers: ReadonlyMap<string, Handler>
  readonly maxConcurrent: number
  /** Keeps the lease of a claim while it is held here. */
  readonly keeper: { hold(runId: string, token: string, leaseMs: number): void; drop(token: string): void }
  /** Called when a slot has come free; null: one that was only reserved. */
  readonly onRoom: (freed: FreedSlot | null) => void
}

export class Executor {
  /** What is in hand of each queue; of the internal one, which has no limits, nothing is counted. */
  readonly loads = new QueueLoads()
  readonly #options: ExecutorOptions
  readonly #deliveries = new Map<string, Delivery>()
  #reserved = 0
  #draining = false
  #whenEmpty: (() => void)[] = []

  constructor(options: ExecutorOptions) {
    this.#options = options
  }

  /** Takes up to `wanted` slots for claims that are about to be made; gives how many there were. */
  reserve(wanted: number): number {
    if (this.#draining) return 0
    const room = this.#options.maxConcurrent - this.#deliveries.size - this.#reserved
    const granted = Math.max(0, Math.min(wanted, room))
    this.#reserved += granted
    return granted
  }

  /** Gives back slots that no claim came for. */
  unreserve(slots: number): void {
    this.#reserved -= slots
    if (slots > 0) this.#options.onRoom(null)
    this.#tellEmpty()
  }

  /** Begins to deliver a claim into a slot reserved for it. Returns at once. */
  begin(claim: Claim): void {
    this.#reserved -= 1
    const handler = this.#options.handlers.get(claim.definition)
    invariant(handler !== undefined, 'only runs of registered definitions are claimed')
    const delivery = new Delivery(claim, handler, this.#options)
    this.#deliveries.set(claim.token, delivery)
    if (claim.queue !== null) this.loads.add(claim.queue, claim.lane)
    this.#options.keeper.hold(claim.runId, claim.token, claim.leaseMs)
    if (this.#draining) delivery.abort('shutdown')
    // A direct start runs in no other async context than a resume: a body must not see who started it.
    void detached(() => this.#deliver(delivery))
  }

  cancelRequested(token: string): void {
    this.#deliveries.get(token)?.abort('cancelled')
  }

  claimLost(token: string): void {
    this.#deliveries.get(token)?.abort('claimLost')
  }

  /** Deliveries under way, and claims that may be. */
  get running(): number {
    return this.#deliveries.size + this.#reserved
  }

  /** Accepts no reservation from now on. */
  close(): void {
    this.#draining = true
  }

  /** Hands every run back: what still runs is aborted, its run released at its old place. */
  handBack(): void {
    for (const delivery of this.#deliveries.values()) delivery.abort('shutdown')
  }

  /** Resolves when nothing runs. */
  empty(): Promise<void> {
    if (this.running === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenEmpty.push(resolve))
  }

  busy(): boolean {
    return this.#reserved > 0 || this.#some('moving')
  }

  runningUserCode(): boolean {
    return this.#some('userCode')
  }

  #some(standing: Delivery['standing']): boolean {
    for (const delivery of this.#deliveries.values()) if (delivery.standing === standing) return true
    return false
  }

  async #deliver(delivery: Delivery): Promise<void> {
    await delivery.run()
    const { token, queue, lane } = delivery.claim
    this.#deliveries.delete(token)
    if (queue !== null) this.loads.remove(queue, lane)
    this.#options.keeper.drop(token)
    this.#options.onRoom({ queue, lane })
    this.#tellEmpty()
  }

  #tellEmpty(): void {
    if (this.running > 0) return
    const waiting = this.#whenEmpty
    this.#whenEmpty = []
    for (const resolve of waiting) resolve()
  }
}
