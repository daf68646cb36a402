/** Live claims: by the end of their lease, by token, by owner, and those asked to cancel by owner. Ids of runs. */
import type { EpochMs } from '../../core/clock.ts'
import type { RunRecord } from '../records.ts'
import { OrderedIndex } from './ordered-index.ts'
import { SetMap } from './set-map.ts'

export class LiveClaims {
  readonly #leases = new OrderedIndex()
  readonly #byToken = new Map<string, string>()
  readonly #byOwner = new SetMap<string>()
  readonly #asked = new SetMap<string>()

  /** A row was replaced, created (no `old`) or removed (no `run`). */
  change(old: RunRecord | undefined, run: RunRecord | undefined): void {
    if (old?.status === 'PENDING') this.#leave(old)
    if (run?.status === 'PENDING') this.#join(run)
  }

  under(token: string): string | undefined {
    return this.#byToken.get(token)
  }

  of(owner: string): ReadonlySet<string> {
    return this.#byOwner.get(owner)
  }

  askedToCancel(owner: string): ReadonlySet<string> {
    return this.#asked.get(owner)
  }

  nextExpiry(): EpochMs | null {
    return this.#leases.first()?.rank ?? null
  }

  expired(now: EpochMs, limit: number): readonly string[] {
    return this.#leases.upTo(now, limit)
  }

  #join(run: RunRecord): void {
    if (run.leaseUntil !== null) this.#leases.set(run.id, run.leaseUntil, run.seq)
    if (run.token !== null) this.#byToken.set(run.token, run.id)
    if (run.owner === null) return
    this.#byOwner.add(run.owner, run.id)
    if (run.cancelRequested) this.#asked.add(run.owner, run.id)
  }

  #leave(run: RunRecord): void {
    this.#leases.delete(run.id)
    if (run.token !== null && this.#byToken.get(run.token) === run.id) this.#byToken.delete(run.token)
    if (run.owner === null) return
    this.#byOwner.delete(run.owner, run.id)
    this.#asked.delete(run.owner, run.id)
  }
}
