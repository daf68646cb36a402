/**
 * The commands that wait for a commit, and which of them may go next.
 *
 * Guarantees: of entries that share a key only the earliest is ever handed out, until it is done; entries are
 * handed out in the order in which they became free; adding, taking and finishing cost the same with ten entries
 * waiting or a hundred thousand (an entry waits with those that block it, nobody scans for it).
 */
import type { Command, Outcome } from '../../store/contract.ts'
import { answer, type Entry, entryOf, join, mayBeMerged, mayJoin, type Part, refuse } from './entry.ts'
import { Fifo } from './fifo.ts'

export interface BatchBounds {
  readonly maxRows: number
  readonly maxTextLength: number
}

/** A fenced command that the database refused: what was given behind it under the same token can't stand without it. */
interface BrokenChain {
  readonly token: string
  readonly error: unknown
  /** Entries with this number or a higher one were given by callers who could know. */
  readonly until: number
}

export class PendingCommands {
  readonly #bounds: BatchBounds
  /** The latest entry of each key. */
  readonly #latest = new Map<string, Entry>()
  /** Handed out before, not tried by the store: they go first. */
  readonly #untried = new Fifo<Entry>()
  readonly #ready = new Fifo<Entry>()
  /** Handed out and not done. */
  readonly #taken = new Set<Entry>()
  readonly #broken = new Map<string, BrokenChain>()
  #count = 0
  #nextNumber = 0

  constructor(bounds: BatchBounds) {
    this.#bounds = bounds
  }

  /** Commands without an answer. */
  get count(): number {
    return this.#count
  }

  /** True if `take` would hand out something. */
  get ready(): boolean {
    return this.#untried.size > 0 || this.#ready.size > 0
  }

  add(part: Part): void {
    this.#count += 1
    const before = this.#joinable(part.command)
    if (before === undefined) this.#append(entryOf(part, this.#nextNumber++))
    else join(before, part)
  }

  /** The next batch, within the bounds; a single entry that exceeds them goes alone. */
  take(): readonly Entry[] {
    const batch: Entry[] = []
    let rows = 0
    let textLength = 0
    for (;;) {
      const source = this.#untried.size > 0 ? this.#untried : this.#ready
      const entry = source.first()
      if (entry === undefined) return batch
      if (this.#refusedWithItsChain(entry)) {
        source.shift()
        continue
      }
      rows += entry.rows
      textLength += entry.textLength
      const exceeded = rows > this.#bounds.maxRows || textLength > this.#bounds.maxTextLength
      if (exceeded && batch.length > 0) return batch
      source.shift()
      entry.sealed = true
      this.#taken.add(entry)
      batch.push(entry)
    }
  }

  /** Back to the head of the queue: a store has answered for what was before them only. */
  giveBack(entries: readonly Entry[]): void {
    for (const entry of entries) this.#untried.push(entry)
  }

  /** Of an entry that can't go as a whole: its parts one by one, in its place. */
  split(entry: Entry): void {
    if (entry.done) return
    const alone = entry.parts.map((part): Entry => ({ ...entryOf(part, entry.number), sealed: true }))
    const last = alone.reduce((before, after) => {
      before.successors.push(after)
      after.blockedBy = 1
      return after
    })
    last.successors.push(...entry.successors)
    last.whenDone.push(...entry.whenDone)
    for (const key of entry.keys) if (this.#latest.get(key) === entry) this.#latest.set(key, last)
    entry.done = true
    this.#taken.delete(entry)
    const [first] = alone
    if (first !== undefined) this.#untried.push(first)
  }

  /** Resolves when what was given so far for a run has an answer; rejects if it was refused, under this token. */
  settled(runId: string, token: string): Promise<void> {
    const latest = this.#latest.get(runId)
    if (latest === undefined) return Promise.resolve()
    return new Promise((resolve, reject) => {
      latest.whenDone.push((refusal) => {
        if (refusal === null || latest.token !== token) resolve()
        else reject(refusal.error)
      })
    })
  }

  answer(entry: Entry, outcome: Outcome): void {
    if (entry.done) return
    answer(entry, outcome)
    this.#finish(entry)
  }

  /** Fails the entry, and what waits behind it under the same token. */
  refuse(entry: Entry, error: unknown): void {
    if (entry.done) return
    const [key] = entry.keys
    if (entry.token !== null && key !== undefined && entry.successors.length > 0) {
      this.#broken.set(key, { token: entry.token, error, until: this.#nextNumber })
    }
    refuse(entry, error)
    this.#finish(entry)
  }

  /** Fails everything, in flight or not. */
  refuseAll(error: unknown): void {
    for (const entry of [...this.#taken]) this.refuse(entry, error)
    for (let batch = this.take(); batch.length > 0; batch = this.take()) {
      for (const entry of batch) this.refuse(entry, error)
    }
  }

  #joinable(command: Command): Entry | undefined {
    if (!mayBeMerged(command)) return undefined
    const latest = this.#latest.get(command.runId)
    return latest !== undefined && mayJoin(latest, command, this.#bounds.maxTextLength) ? latest : undefined
  }

  #append(entry: Entry): void {
    for (const key of entry.keys) {
      const before = this.#latest.get(key)
      if (before !== undefined) {
        before.successors.push(entry)
        entry.blockedBy += 1
      }
      this.#latest.set(key, entry)
    }
    if (entry.blockedBy === 0) this.#ready.push(entry)
  }

  #finish(entry: Entry): void {
    this.#count -= entry.parts.length
    this.#taken.delete(entry)
    for (const key of entry.keys) {
      if (this.#latest.get(key) !== entry) continue
      this.#latest.delete(key)
      this.#broken.delete(key)
    }
    for (const successor of entry.successors) {
      successor.blockedBy -= 1
      if (successor.blockedBy === 0) this.#ready.push(successor)
    }
  }

  #refusedWithItsChain(entry: Entry): boolean {
    if (entry.done) return true
    const [key] = entry.keys
    if (this.#broken.size === 0 || entry.token === null || key === undefined) return false
    const chain = this.#broken.get(key)
    if (chain === undefined || chain.token !== entry.token || entry.number >= chain.until) return false
    refuse(entry, chain.error)
    this.#finish(entry)
    return true
  }
}
