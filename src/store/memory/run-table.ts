/**
 * The rows of the runs and what finds them without a scan. Rows are frozen and replaced, never changed, so one that
 * was given out stays as it was.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { RunRecord } from '../records.ts'
import { OrderedIndex } from './ordered-index.ts'

export class RunTable {
  readonly #rows = new Map<string, RunRecord>()
  /** Ids in order of acceptance; the run of `seq` n is at n - 1. */
  readonly #accepted: string[] = []
  /** What is claimable on the internal queue, by definition: at once, and by time. */
  readonly #enqueued = new Map<string, OrderedIndex>()
  readonly #due = new Map<string, OrderedIndex>()
  /** Live claims: by the end of their lease, by token, by owner, and those asked to cancel by owner. */
  readonly #leases = new OrderedIndex()
  readonly #byToken = new Map<string, string>()
  readonly #byOwner = new Map<string, Set<string>>()
  readonly #asked = new Map<string, Set<string>>()

  nextSeq(): number {
    return this.#accepted.length + 1
  }

  get(id: string): RunRecord | undefined {
    return this.#rows.get(id)
  }

  put(run: RunRecord): void {
    const old = this.#rows.get(run.id)
    if (old === undefined) this.#accepted.push(run.id)
    else this.#unlink(old)
    this.#rows.set(run.id, Object.freeze(run))
    this.#link(run)
  }

  /** The run held under this token. */
  heldUnder(token: string): RunRecord | undefined {
    return this.#row(this.#byToken.get(token))
  }

  heldBy(owner: string): readonly RunRecord[] {
    return this.#all(this.#byOwner.get(owner))
  }

  askedToCancel(owner: string): readonly RunRecord[] {
    return this.#all(this.#asked.get(owner))
  }

  /** The run to be claimed next: a suspended one that is due, else the first in line. */
  nextClaimable(definitions: readonly string[], now: EpochMs): RunRecord | undefined {
    const due = this.#first(this.#due, definitions)
    if (due !== undefined && due.dueAt !== null && due.dueAt <= now) return due
    return this.#first(this.#enqueued, definitions)
  }

  /** When the next of these becomes claimable; null: none by time. */
  nextDue(definitions: readonly string[], now: EpochMs): EpochMs | null {
    if (this.#first(this.#enqueued, definitions) !== undefined) return now
    return this.#first(this.#due, definitions)?.dueAt ?? null
  }

  nextExpiry(): EpochMs | null {
    return this.#leases.first()?.rank ?? null
  }

  expired(now: EpochMs, limit: number): readonly RunRecord[] {
    return this.#all(this.#leases.upTo(now, limit))
  }

  /** The newest first, from just before `beforeSeq`. */
  *newest(beforeSeq: number = this.nextSeq()): Generator<RunRecord> {
    for (let at = Math.min(beforeSeq, this.nextSeq()) - 2; at >= 0; at--) {
      const run = this.#row(this.#accepted[at])
      if (run !== undefined) yield run
    }
  }

  #link(run: RunRecord): void {
    if (run.status === 'PENDING') {
      if (run.leaseUntil !== null) this.#leases.set(run.id, run.leaseUntil, run.seq)
      if (run.token !== null) this.#byToken.set(run.token, run.id)
      if (run.owner === null) return
      entryOf(this.#byOwner, run.owner, () => new Set()).add(run.id)
      if (run.cancelRequested) entryOf(this.#asked, run.owner, () => new Set()).add(run.id)
    } else if (run.queue !== null) {
      return
    } else if (run.status === 'ENQUEUED') {
      entryOf(this.#enqueued, run.definition, () => new OrderedIndex()).set(run.id, run.seq, run.seq)
    } else if (run.dueAt !== null) {
      entryOf(this.#due, run.definition, () => new OrderedIndex()).set(run.id, run.dueAt, run.seq)
    }
  }

  #unlink(run: RunRecord): void {
    this.#enqueued.get(run.definition)?.delete(run.id)
    this.#due.get(run.definition)?.delete(run.id)
    this.#leases.delete(run.id)
    if (run.token !== null && this.#byToken.get(run.token) === run.id) this.#byToken.delete(run.token)
    if (run.owner === null) return
    leave(this.#byOwner, run.owner, run.id)
    leave(this.#asked, run.owner, run.id)
  }

  /** The first of several definitions' indexes, by rank and then by place. */
  #first(indexes: ReadonlyMap<string, OrderedIndex>, definitions: readonly string[]): RunRecord | undefined {
    let first: ReturnType<OrderedIndex['first']>
    for (const definition of definitions) {
      const entry = indexes.get(definition)?.first()
      if (entry === undefined) continue
      if (first === undefined || entry.rank < first.rank || (entry.rank === first.rank && entry.place < first.place)) {
        first = entry
      }
    }
    return this.#row(first?.id)
  }

  #row(id: string | undefined): RunRecord | undefined {
    return id === undefined ? undefined : this.#rows.get(id)
  }

  #all(ids: Iterable<string> | undefined): readonly RunRecord[] {
    const rows: RunRecord[] = []
    for (const id of ids ?? []) {
      const run = this.#rows.get(id)
      if (run !== undefined) rows.push(run)
    }
    return rows
  }
}

function entryOf<T>(map: Map<string, T>, key: string, create: () => T): T {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = create()
  map.set(key, made)
  return made
}

/** An owner is one incarnation of a process: an emptied set is dropped, as its key may never be used again. */
function leave(sets: Map<string, Set<string>>, key: string, id: string): void {
  const set = sets.get(key)
  if (set?.delete(id) === true && set.size === 0) sets.delete(key)
}
