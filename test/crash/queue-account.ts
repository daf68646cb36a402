/**
 * Judges what happened by the journal, which knows nothing of the store.
 *
 * It sees: a run that is worked on by two living processes; one that begins again though the process that had it lives,
 * or after its settlement was acknowledged; a step that is done again after its record was acknowledged, or without a
 * kill in between; more runs of a lane at once than allowed, from their first line to their last, or to the death of
 * their process, which is noted while it stands still, before it is killed. So every fault it reports is one. What a
 * process does with a run that it has lost (noted as well, while it stands still) is not held against anybody.
 *
 * It does not see the ends of a claim that lie outside the body: between claim and first line, between last line and
 * settlement, and from the death of a process until its claim is taken away. `queue-claims.ts` sees those, by what the
 * store says of its attempts, to the millisecond.
 */
import type { Note } from './journal.ts'
import { laneOf } from './queue-work.ts'

export interface Account {
  readonly faults: readonly string[]
  /** Of each lane: how many runs were at work at once, at most. */
  readonly peaks: ReadonlyMap<string, number>
  /** Of each run: the processes that began it. */
  readonly begins: ReadonlyMap<string, readonly number[]>
  /** Runs that ended, by the acknowledgement of the store or by their last line. */
  readonly ended: ReadonlySet<string>
  /** Kills of processes that had runs in hand. */
  readonly hits: number
  /** How many effects were had again. */
  readonly repeatedEffects: number
}

interface Life {
  readonly pids: number[]
  /** Processes that lost it, and may not know. */
  readonly losers: Set<number>
  /** Between its first line and its last, in a living process. */
  atWork: boolean
  settled: boolean
}

interface Step {
  effects: number
  /** The process of the last effect, until its record was acknowledged. */
  by: number | undefined
  recorded: boolean
}

class Bookkeeper {
  readonly faults: string[] = []
  readonly peaks = new Map<string, number>()
  readonly lives = new Map<string, Life>()
  readonly ended = new Set<string>()
  hits = 0
  repeatedEffects = 0
  readonly #killed = new Set<number>()
  readonly #steps = new Map<string, Step>()
  readonly #atWork = new Map<string, Set<string>>()

  begin({ key, pid }: Note): void {
    const life = this.lives.get(key) ?? { pids: [], losers: new Set(), atWork: false, settled: false }
    this.lives.set(key, life)
    const before = life.pids.at(-1)
    if (life.settled) this.faults.push(`${key} begins in ${pid} after it was settled`)
    else if (before !== undefined && !this.#killed.has(before) && !life.losers.has(before)) {
      this.faults.push(`${key} begins in ${pid} though ${before}, which had it, lives`)
    }
    life.pids.push(pid)
    life.atWork = true
    const lane = this.#lane(key)
    lane.add(key)
    this.peaks.set(laneOf(key), Math.max(this.peaks.get(laneOf(key)) ?? 0, lane.size))
  }

  end({ key, pid }: Note): void {
    const life = this.lives.get(key)
    if (life?.losers.has(pid) === true) return
    if (life === undefined || life.pids.at(-1) !== pid || !life.atWork) {
      this.faults.push(`${key} ends in ${pid}, which does not have it`)
      return
    }
    this.#rest(key, life)
    this.ended.add(key)
  }

  effect({ key, pid }: Note): void {
    const losers = this.lives.get(key.slice(0, key.lastIndexOf(':')))?.losers
    if (losers?.has(pid) === true) return
    const step = this.#steps.get(key) ?? { effects: 0, by: undefined, recorded: false }
    this.#steps.set(key, step)
    if (step.recorded) this.faults.push(`${key} is done again after its record`)
    else if (step.by !== undefined && !this.#killed.has(step.by) && losers?.has(step.by) !== true) {
      this.faults.push(`${key} is done again though ${step.by} lives`)
    }
    if (step.effects > 0) this.repeatedEffects += 1
    step.effects += 1
    step.by = pid
  }

  recorded({ key }: Note): void {
    const step = this.#steps.get(key)
    if (step !== undefined) step.recorded = true
  }

  settled({ key }: Note): void {
    const life = this.lives.get(key)
    if (life !== undefined) life.settled = true
    this.ended.add(key)
  }

  killed({ pid }: Note): void {
    this.#killed.add(pid)
    let inHand = 0
    for (const [key, life] of this.lives) {
      if (!life.atWork || life.pids.at(-1) !== pid) continue
      inHand += 1
      this.#rest(key, life)
    }
    if (inHand > 0) this.hits += 1
  }

  lost({ key, pid }: Note): void {
    const life = this.lives.get(key)
    if (life === undefined) return
    life.losers.add(pid)
    if (life.pids.at(-1) === pid) this.#rest(key, life)
  }

  #rest(key: string, life: Life): void {
    life.atWork = false
    this.#lane(key).delete(key)
  }

  #lane(key: string): Set<string> {
    const lane = laneOf(key)
    const atWork = this.#atWork.get(lane) ?? new Set()
    this.#atWork.set(lane, atWork)
    return atWork
  }
}

/** Notes of other kinds are passed over. */
export function accountOf(notes: readonly Note[]): Account {
  const books = new Bookkeeper()
  for (const note of notes) {
    switch (note.what) {
      case 'begin':
        books.begin(note)
        break
      case 'end':
        books.end(note)
        break
      case 'effect':
        books.effect(note)
        break
      case 'recorded':
        books.recorded(note)
        break
      case 'settled':
        books.settled(note)
        break
      case 'killed':
        books.killed(note)
        break
      case 'lost':
        books.lost(note)
        break
    }
  }
  const { faults, peaks, ended, hits, repeatedEffects } = books
  const begins = new Map([...books.lives].map(([key, { pids }]) => [key, pids]))
  return { faults, peaks, begins, ended, hits, repeatedEffects }
}

/** The instants at which runs of a lane began, in order. */
export function beginnings(notes: readonly Note[], lane: string): readonly number[] {
  const instants = notes.filter(({ what, key }) => what === 'begin' && laneOf(key) === lane)
  return instants.map(({ value }) => Number(value)).sort((a, b) => a - b)
}

/** The shortest window that holds more instants than the limit allows; instants are in order. */
export function tightestWindow(instants: readonly number[], limit: number): number {
  let tightest = Number.POSITIVE_INFINITY
  for (const [index, last] of instants.slice(limit).entries()) {
    tightest = Math.min(tightest, last - (instants[index] ?? last))
  }
  return tightest
}
