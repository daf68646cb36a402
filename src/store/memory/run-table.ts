/**
 * The rows of the runs and what finds them without a scan. Rows are frozen and replaced, never changed, so one that
 * was given out stays as it was.
 */
import { invariant } from '../../core/invariant.ts'
import type { RunRecord } from '../records.ts'
import { isTerminal } from '../records.ts'
import { Acceptance } from './acceptance.ts'
import { EndedRuns } from './ended-runs.ts'
import { Line } from './line.ts'
import { LiveClaims } from './live-claims.ts'
import { SetMap } from './set-map.ts'

export class RunTable {
  readonly #rows = new Map<string, RunRecord>()
  readonly #acceptance = new Acceptance()
  readonly claims = new LiveClaims()
  readonly ended = new EndedRuns()
  /** By queue; null is the internal one. */
  readonly #lines = new Map<string | null, Line>()
  /** Of runs that have not ended: who holds a deduplication id of a queue, and whom a parent would take along. */
  readonly #dedup = new Map<string, Map<string, string>>()
  readonly #children = new SetMap<string>()

  nextSeq(): number {
    return this.#acceptance.nextSeq()
  }

  get(id: string): RunRecord | undefined {
    return this.#rows.get(id)
  }

  /** A run that an index has named. */
  at(id: string): RunRecord {
    const run = this.#rows.get(id)
    invariant(run !== undefined, `an index names run ${id}, which is not there`)
    return run
  }

  put(run: RunRecord): void {
    const old = this.#rows.get(run.id)
    if (old === undefined) this.#acceptance.add(run.seq, run.id)
    this.#rows.set(run.id, Object.freeze(run))
    this.#index(old, run)
  }

  remove(run: RunRecord): void {
    this.#rows.delete(run.id)
    this.#acceptance.remove(run.seq)
    this.#index(run, undefined)
  }

  line(queue: string | null): Line {
    const found = this.#lines.get(queue)
    if (found !== undefined) return found
    const line = new Line()
    this.#lines.set(queue, line)
    return line
  }

  /** The run that holds a deduplication id in a queue. */
  holderOf(queue: string, dedupId: string): RunRecord | undefined {
    const id = this.#dedup.get(queue)?.get(dedupId)
    return id === undefined ? undefined : this.at(id)
  }

  /** Attached children that have not ended. */
  childrenOf(id: string): readonly RunRecord[] {
    return this.all(this.#children.get(id))
  }

  all(ids: Iterable<string>): readonly RunRecord[] {
    return Array.from(ids, (id) => this.at(id))
  }

  /** The newest first, from just before `beforeSeq`. */
  *newest(beforeSeq?: number): Generator<RunRecord> {
    for (const id of this.#acceptance.newest(beforeSeq)) yield this.at(id)
  }

  #index(old: RunRecord | undefined, run: RunRecord | undefined): void {
    this.claims.change(old, run)
    this.ended.change(old, run)
    this.line((run ?? old)?.queue ?? null).change(old, run)
    if (old !== undefined && !isTerminal(old.status)) this.#leave(old)
    if (run !== undefined && !isTerminal(run.status)) this.#join(run)
  }

  #join(run: RunRecord): void {
    if (run.parentId !== null) this.#children.add(run.parentId, run.id)
    if (run.queue === null || run.dedupId === null) return
    const held = this.#dedup.get(run.queue) ?? new Map<string, string>()
    this.#dedup.set(run.queue, held.set(run.dedupId, run.id))
  }

  #leave(run: RunRecord): void {
    if (run.parentId !== null) this.#children.delete(run.parentId, run.id)
    if (run.queue !== null && run.dedupId !== null) this.#dedup.get(run.queue)?.delete(run.dedupId)
  }
}
