/** The runs that a batch has read, as its commands change them. */
import { invariant } from '../../../core/invariant.ts'
import type { RunRows } from '../../apply/rows.ts'
import type { RunRecord } from '../../records.ts'
import { isTerminal } from '../../records.ts'

export class LoadedRuns implements RunRows {
  /** null: there is no such run. What is not in it was not read, and must not be asked for. */
  readonly #rows = new Map<string, RunRecord | null>()
  readonly #locked = new Set<string>()
  readonly #places: number[] = []
  #placesTaken = 0
  readonly #holders = new Map<string, string>()
  readonly #children = new Map<string, Set<string>>()
  /** Queues of which it matters whether they are partitioned. */
  readonly queues = new Set<string>()
  /** Runs that were created. */
  readonly created = new Map<string, RunRecord>()
  /** Rows as they were read, of those that were changed. */
  readonly changed = new Map<string, RunRecord>()

  // ── Loading ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** There are no runs of these ids but those that are loaded besides. */
  loadAbsent(ids: Iterable<string>): void {
    for (const id of ids) if (!this.#rows.has(id)) this.#rows.set(id, null)
  }

  /** Read under a lock: it may be changed. */
  loadLocked(run: RunRecord): void {
    this.#locked.add(run.id)
    // Elsewhere the lane says it.
    if (run.queue !== null && run.lane === '') this.queues.add(run.queue)
    this.#load(run)
  }

  /** Read without one: it may only be looked at. */
  loadSeen(run: RunRecord): void {
    if (run.queue !== null) this.queues.add(run.queue)
    const locked = this.#locked.has(run.id) ? this.#rows.get(run.id) : undefined
    if (locked === undefined || locked === null) this.#load(run)
    else if (locked.inputHash === '') this.#rows.set(run.id, { ...locked, inputHash: run.inputHash })
  }

  loadPlaces(places: readonly number[]): void {
    for (const place of places) this.#places.push(place)
  }

  #load(run: RunRecord): void {
    this.#rows.set(run.id, run)
    if (!isTerminal(run.status)) this.#join(run)
  }

  // ── As commands see them ──────────────────────────────────────────────────────────────────────────────────────

  nextSeq(): number {
    const place = this.#places[this.#placesTaken]
    invariant(place !== undefined, 'a batch starts more runs than it has taken places for')
    this.#placesTaken += 1
    return place
  }

  get(id: string): RunRecord | undefined {
    const row = this.#rows.get(id)
    invariant(row !== undefined, `run ${id} was not read before it was needed`)
    return row ?? undefined
  }

  at(id: string): RunRecord {
    const run = this.get(id)
    invariant(run !== undefined, `run ${id} is named, but is not there`)
    return run
  }

  put(run: RunRecord): void {
    const old = this.#rows.get(run.id) ?? null
    if (old === null || this.created.has(run.id)) this.created.set(run.id, run)
    else {
      invariant(this.#locked.has(run.id), `run ${run.id} is changed, but was not locked`)
      if (!this.changed.has(run.id)) this.changed.set(run.id, old)
    }
    this.#rows.set(run.id, run)
    if (isTerminal(run.status)) this.#leave(run)
    else this.#join(run)
  }

  holderOf(queue: string, dedupId: string): RunRecord | undefined {
    const id = this.#holders.get(slotOf(queue, dedupId))
    return id === undefined ? undefined : this.at(id)
  }

  childrenOf(id: string): readonly RunRecord[] {
    return Array.from(this.#children.get(id) ?? [], (child) => this.at(child))
  }

  #join(run: RunRecord): void {
    if (run.queue !== null && run.dedupId !== null) this.#holders.set(slotOf(run.queue, run.dedupId), run.id)
    if (run.parentId === null) return
    const children = this.#children.get(run.parentId)
    if (children === undefined) this.#children.set(run.parentId, new Set([run.id]))
    else children.add(run.id)
  }

  #leave(run: RunRecord): void {
    if (run.parentId !== null) this.#children.get(run.parentId)?.delete(run.id)
    if (run.queue === null || run.dedupId === null) return
    const slot = slotOf(run.queue, run.dedupId)
    if (this.#holders.get(slot) === run.id) this.#holders.delete(slot)
  }
}

function slotOf(queue: string, dedupId: string): string {
  return JSON.stringify([queue, dedupId])
}
