/**
 * Keeps all claims of this engine: those of each length of lease by a keeper of their own, which renews at a third of
 * it. A keeper comes with the first claim that needs it.
 */
import { LeaseKeeper, type LeaseKeeperOptions } from './lease-keeper.ts'

export type LeaseKeepersOptions = Omit<LeaseKeeperOptions, 'leaseMs'>

export class LeaseKeepers {
  readonly #options: LeaseKeepersOptions
  /** By length of lease. */
  readonly #keepers = new Map<number, LeaseKeeper>()
  readonly #keeperOf = new Map<string, LeaseKeeper>()
  #started = false

  constructor(options: LeaseKeepersOptions) {
    this.#options = options
  }

  start(): void {
    this.#started = true
    for (const keeper of this.#keepers.values()) keeper.start()
  }

  async stop(): Promise<void> {
    this.#started = false
    await Promise.all(Array.from(this.#keepers.values(), (keeper) => keeper.stop()))
  }

  /** To be called before the claimed run's handler, which may block the event loop from its first line. */
  hold(runId: string, token: string, leaseMs: number): void {
    const keeper = this.#keeper(leaseMs)
    this.#keeperOf.set(token, keeper)
    keeper.hold(runId, token)
  }

  /** Of a claim that was settled, lost or given up. */
  drop(token: string): void {
    this.#keeperOf.get(token)?.drop(token)
    this.#keeperOf.delete(token)
  }

  async renewOverdue(): Promise<void> {
    await Promise.all(Array.from(this.#keepers.values(), (keeper) => keeper.renewOverdue()))
  }

  busy(): boolean {
    for (const keeper of this.#keepers.values()) if (keeper.busy()) return true
    return false
  }

  activity(): number {
    let sum = 0
    for (const keeper of this.#keepers.values()) sum += keeper.activity()
    return sum
  }

  #keeper(leaseMs: number): LeaseKeeper {
    const known = this.#keepers.get(leaseMs)
    if (known !== undefined) return known
    const keeper = new LeaseKeeper({ ...this.#options, leaseMs })
    this.#keepers.set(leaseMs, keeper)
    if (this.#started) keeper.start()
    return keeper
  }
}
