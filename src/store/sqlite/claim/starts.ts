/** Enqueued runs of a queue without lanes of their own: by `rank` and then `seq`, over the lists that are served. */
import type { Database } from '../database.ts'
import type { Candidate } from './candidate.ts'
import { CANDIDATE_COLUMNS, precedes, toCandidate } from './candidate.ts'
import { Line } from './line.ts'
import type { List } from './lists.ts'
import type { Offer } from './offer.ts'
import type { Room } from './room.ts'

export const START_PAGE = `
select ${CANDIDATE_COLUMNS} from perdure_runs indexed by perdure_runs_claimable
where status = 'ENQUEUED' and queue is ? and lane = '' and definition = ? and version is ? and (rank, seq) > (?, ?)
order by rank, seq limit ?`

interface Head extends Candidate {
  readonly list: StartList
}

export class Starts {
  readonly #room: Room
  readonly #line = new Line<Head>(precedes)
  /** Of which the head was taken, and the next is not looked for yet. */
  #taken: StartList | undefined

  /** `pageRows`: of each list, read at a time. */
  constructor(database: Database, lists: readonly List[], room: Room, pageRows: number) {
    this.#room = room
    for (const list of lists) this.#line.add(new StartList(database, list, pageRows).next())
  }

  /** undefined: there is none, or no room for one. What it has answered is taken. */
  next(): Offer | undefined {
    this.#line.add(this.#taken?.next())
    this.#taken = undefined
    const head = this.#line.first()
    if (head === undefined) return undefined
    const room = this.#room
    const lane = room.lane('')
    if (!room.mayStart(lane)) return undefined
    this.#line.shift()
    this.#taken = head.list
    return { run: head.run, input: head.input, room, lane }
  }
}

const BEFORE_ALL = { rank: Number.MIN_SAFE_INTEGER, seq: 0 }

class StartList {
  readonly #database: Database
  readonly #list: List
  readonly #pageRows: number
  #page: readonly Candidate[] = []
  #at = 0
  #after: { readonly rank: number; readonly seq: number } = BEFORE_ALL

  constructor(database: Database, list: List, pageRows: number) {
    this.#database = database
    this.#list = list
    this.#pageRows = pageRows
  }

  next(): Head | undefined {
    if (this.#at === this.#page.length && (this.#at === 0 || this.#at === this.#pageRows)) {
      this.#page = this.#read()
      this.#at = 0
    }
    const candidate = this.#page[this.#at]
    if (candidate === undefined) return undefined
    this.#at += 1
    this.#after = candidate.run
    return { run: candidate.run, input: candidate.input, list: this }
  }

  #read(): readonly Candidate[] {
    const { queue, definition, version } = this.#list
    const { rank, seq } = this.#after
    return this.#database
      .prepare(START_PAGE)
      .all(queue, definition, version, rank, seq, this.#pageRows)
      .map(toCandidate)
  }
}
