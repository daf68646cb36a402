/** The runs to claim, in order: what is due to be resumed, then a run of each source in turn. */
import type { Database } from '../database.ts'
import type { Claimant } from './claimant.ts'
import type { List } from './lists.ts'
import type { Offer } from './offer.ts'
import { dueRuns } from './resumes.ts'
import type { Room } from './room.ts'
import { Starts } from './starts.ts'
import type { Survey } from './survey.ts'
import type { Traces } from './traces.ts'
import { Turns } from './turns.ts'

export interface Stage {
  readonly found: Survey
  readonly claimant: Claimant
  /** In the order of the sources. */
  readonly rooms: ReadonlyMap<Room, Traces>
  /** How many runs are claimed at most. */
  readonly wanted: number
}

export class Offers {
  readonly #database: Database
  readonly #stage: Stage
  readonly #due: Iterator<Offer, undefined>
  #starts: readonly (Starts | Turns)[] | undefined
  /** Those that may still have one, in the order of their turns. */
  #open: (Starts | Turns)[] = []

  constructor(database: Database, stage: Stage) {
    this.#database = database
    this.#stage = stage
    const { found, rooms } = stage
    const due = [...rooms.keys()].flatMap((room) =>
      listsOf(found, room, ['resume', 'resume in lanes']).map((list) => ({ list, room })),
    )
    this.#due = dueRuns(database, due, found.now)
  }

  /** Looked for when it is asked for, once the one before has been claimed. */
  next(): Offer | undefined {
    const due = this.#due.next()
    if (due.done !== true) return due.value
    if (this.#starts === undefined) this.#open = [...this.#startsOf()]
    for (let starts = this.#open.shift(); starts !== undefined; starts = this.#open.shift()) {
      const offer = starts.next()
      if (offer === undefined) continue
      this.#open.push(starts)
      return offer
    }
    return undefined
  }

  /** After the last: finds out what the lanes that would come next wait for. */
  close(): void {
    for (const starts of this.#startsOf()) if (starts instanceof Turns) starts.passClosed()
  }

  #startsOf(): readonly (Starts | Turns)[] {
    if (this.#starts !== undefined) return this.#starts
    const { found, rooms, claimant, wanted } = this.#stage
    const sources = [...rooms]
      .map(([room, traces]) => ({ room, traces, lists: listsOf(found, room, ['start', 'start in lanes']) }))
      .filter(({ lists }) => lists.length > 0)
    const pageRows = Math.ceil(wanted / sources.flatMap(({ lists }) => lists).length)
    this.#starts = sources.map(({ room, traces, lists }) =>
      room.laned
        ? new Turns(this.#database, lists, { room, claimant, traces })
        : new Starts(this.#database, lists, room, pageRows),
    )
    return this.#starts
  }
}

function listsOf({ lists }: Survey, { source }: Room, works: readonly List['work'][]): readonly List[] {
  return lists.filter(({ queue, work }) => queue === source.queue && works.includes(work))
}
