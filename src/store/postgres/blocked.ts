/**
 * Commands that a lock of somebody else holds up: a user's open transaction may hold a run's row, or a start's id, for as
 * long as it likes. Each goes on by itself, on one of a few connections, again and again until it gets through, while
 * the rest of its batch is committed.
 */
import { StoreClosedError } from '../../core/errors.ts'
import { text } from '../columns.ts'
import type { Command, CommitOutcome, Outcome } from '../contract.ts'
import { Needs } from './commit/needs.ts'
import { commit } from './commit.ts'
import type { Database, WriteOptions } from './database.ts'
import { LockedError } from './session.ts'

type Writable = Pick<Database, 'write'>

/** Of connections that wait at a time; the others' commands get their turns. */
const MOST_AT_A_TIME = 4
const TURN: WriteOptions = { lockTimeoutMs: 500 }
/** A part of a batch that was found locked has waited already. */
const PART: WriteOptions = { lockTimeoutMs: 10 }

interface Waiting {
  readonly command: Command
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

export class BlockedCommands {
  readonly #database: Writable
  readonly #store: string
  readonly #waiting: Waiting[] = []
  readonly #trying = new Set<Waiting>()
  #closed = false

  constructor(database: Writable, store: string) {
    this.#database = database
    this.#store = store
  }

  /** Resolves when the command has got through; rejects as a commit does. */
  goOn(command: Command): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, resolve, reject })
      this.#next()
    })
  }

  /** Gives up: what becomes of the commands is not known. */
  close(): void {
    this.#closed = true
    for (const { reject } of [...this.#waiting, ...this.#trying]) reject(new StoreClosedError({ store: this.#store }))
  }

  #next(): void {
    while (!this.#closed && this.#trying.size < MOST_AT_A_TIME) {
      const waiting = this.#waiting.shift()
      if (waiting === undefined) return
      this.#trying.add(waiting)
      void this.#try(waiting)
    }
  }

  async #try(waiting: Waiting): Promise<void> {
    try {
      const [outcome] = await commit(this.#database, [waiting.command], TURN)
      if (outcome !== undefined) waiting.resolve(outcome)
    } catch (error) {
      if (error instanceof LockedError) this.#waiting.push(waiting)
      else waiting.reject(error)
    }
    this.#trying.delete(waiting)
    this.#next()
  }
}

/** Answers for all commands, or, if a later one is refused, for those before it. */
export async function commitPastLocks(
  database: Writable,
  commands: readonly Command[],
  goOn: (command: Command) => Promise<Outcome>,
): Promise<readonly CommitOutcome[]> {
  try {
    return await commit(database, commands)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
  }
  const locked = await findLocked(database, [...new Needs(commands).runs])
  const isFree = (command: Command): boolean => ![...new Needs([command]).runs].some((id) => locked.has(id))
  const free = commands.filter(isFree)
  const { answers, error } = await commitParts(database, free)
  const refused = free[answers.length]
  const reached = refused === undefined ? commands.length : commands.indexOf(refused)
  if (reached === 0) throw error
  const answerOf = new Map(free.map((command, index) => [command, answers[index]]))
  return commands
    .slice(0, reached)
    .map((command) => answerOf.get(command) ?? { type: 'blocked', outcome: goOn(command) })
}

/** In order; null: locked by itself. Those after the last were not tried, because of the error. */
interface Parts {
  readonly answers: readonly (Outcome | null)[]
  readonly error?: unknown
}

async function commitParts(database: Writable, commands: readonly Command[]): Promise<Parts> {
  if (commands.length === 0) return { answers: [] }
  try {
    return { answers: await commit(database, commands, PART) }
  } catch (error) {
    if (!(error instanceof LockedError)) return { answers: [], error }
  }
  if (commands.length === 1) return { answers: [null] }
  const middle = Math.ceil(commands.length / 2)
  const first = await commitParts(database, commands.slice(0, middle))
  if (first.answers.length < middle) return first
  const second = await commitParts(database, commands.slice(middle))
  return { ...second, answers: [...first.answers, ...second.answers] }
}

export const LOCKED_RUNS = `
with free as (select id from perdure.runs where id = any ($1::text[]) for no key update skip locked)
select r.id from perdure.runs r where r.id = any ($1::text[]) and r.id not in (select f.id from free f)`

/** Of these runs, those whose row somebody else has locked. */
async function findLocked(database: Writable, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await database.write((transaction) => transaction.query(LOCKED_RUNS, [ids]))
  return new Set(rows.map(([id]) => text(id)))
}
