/**
 * The claim lane: which runs may be taken, and taking them.
 *
 * Each definition's claimable runs are a list in the order of a partial index, and these lists are merged, so a
 * claim costs what it takes, whatever else the store holds. A look without the write lock comes first: an idle
 * process never takes it.
 */
import type { EpochMs } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { ClaimedRun, ClaimRequest } from '../contract.ts'
import * as transitions from '../transitions.ts'
import { number, text } from './columns.ts'
import type { Database } from './database.ts'
import type { Row } from './driver.ts'
import { applyTransition, RUN_COLUMNS, toRun } from './runs.ts'

/** A place in a list of claimable runs: ordered by `dueAt` (0 for enqueued runs), then `seq`. */
interface Place {
  readonly dueAt: number
  readonly seq: number
}
type Page = (definition: string, after: Place, limit: number) => readonly Place[]

const START: Place = { dueAt: Number.MIN_SAFE_INTEGER, seq: 0 }
/** Of each definition's list, read at a time. */
const PAGE_ROWS = 32

export const ENQUEUED_PAGE = `
select seq from perdure_runs indexed by perdure_runs_enqueued
where status = 'ENQUEUED' and queue is null and definition = ? and seq > ? order by seq limit ?`
export const DUE_PAGE = `
select due_at, seq from perdure_runs indexed by perdure_runs_due
where status = 'WAITING' and queue is null and definition = ? and due_at <= ? and (due_at, seq) > (?, ?)
order by due_at, seq limit ?`
/** Tokens of one request lie close together, as they are made in order of time. */
export const HELD_UNDER = `
select ${RUN_COLUMNS} from perdure_runs indexed by perdure_runs_claims
where status = 'PENDING' and owner = ? and token between ? and ? order by token`
export const RUN_BY_SEQ = `select ${RUN_COLUMNS} from perdure_runs where seq = ?`
export const INPUT_BY_SEQ = 'select input from perdure_inputs where run = ?'

/** True if `claim` would find anything. */
export function isClaimable(database: Database, request: ClaimRequest): boolean {
  if (request.tokens.length === 0) return false
  if (heldAlready(database, request).length > 0) return true
  const now = database.clock.now()
  const due = nextDue(database, request.definitions, now)
  return due !== null && due <= now
}

/** Inside a transaction. */
export function claim(database: Database, request: ClaimRequest): readonly ClaimedRun[] {
  const now = database.clock.now()
  const held = heldAlready(database, request)
  const taken = new Set(held.map(({ token }) => token))
  const free = request.tokens.filter((token) => !taken.has(token))
  const places = nextPlaces(database, request.definitions, free.length, now)
  const claimed = places.map(({ seq }, index): ClaimedRun => {
    const token = free[index]
    const row = database.prepare(RUN_BY_SEQ).get(seq)
    invariant(token !== undefined && row !== undefined, 'more places than tokens, or a place without a run')
    const by = { token, owner: request.owner, leaseMs: request.leaseMs }
    return answer(database, transitions.claim(toRun(row), by, now), token)
  })
  return [...held, ...claimed]
}

function answer(database: Database, transition: transitions.Transition, token: string): ClaimedRun {
  const run = applyTransition(database, transition)
  return { run, token, input: inputOf(database, run.seq) }
}

function inputOf(database: Database, seq: number): string {
  return text(database.prepare(INPUT_BY_SEQ).get(seq)?.[0])
}

function heldAlready(database: Database, { owner, tokens }: ClaimRequest): readonly ClaimedRun[] {
  const sorted = [...tokens].sort()
  const [first] = sorted
  const last = sorted.at(-1)
  if (first === undefined || last === undefined) return []
  const asked = new Set(tokens)
  return database
    .prepare(HELD_UNDER)
    .all(owner, first, last)
    .map(toRun)
    .flatMap((run) => {
      const { token } = run
      if (token === null || !asked.has(token)) return []
      return [{ run, token, input: inputOf(database, run.seq) }]
    })
}

/** Suspended runs that are due come before enqueued ones: they have started already. */
function nextPlaces(database: Database, definitions: readonly string[], limit: number, now: EpochMs): readonly Place[] {
  const names = [...new Set(definitions)]
  const due: Page = (definition, after, rows) =>
    database.prepare(DUE_PAGE).all(definition, now, after.dueAt, after.seq, rows).map(toDuePlace)
  const enqueued: Page = (definition, after, rows) =>
    database.prepare(ENQUEUED_PAGE).all(definition, after.seq, rows).map(toEnqueuedPlace)
  const first = merge(names, due, limit)
  return [...first, ...merge(names, enqueued, limit - first.length)]
}

const toDuePlace = (row: Row): Place => ({ dueAt: number(row[0]), seq: number(row[1]) })
const toEnqueuedPlace = (row: Row): Place => ({ dueAt: 0, seq: number(row[0]) })

/** The first `limit` places of all lists together. */
function merge(definitions: readonly string[], page: Page, limit: number): readonly Place[] {
  if (limit <= 0) return []
  const rows = Math.min(PAGE_ROWS, limit)
  const lists = definitions.map((definition) => ({ definition, places: [...page(definition, START, rows)], at: 0 }))
  const merged: Place[] = []
  while (merged.length < limit) {
    let first: { readonly place: Place; readonly list: (typeof lists)[number] } | undefined
    for (const list of lists) {
      const place = list.places[list.at]
      if (place !== undefined && (first === undefined || precedes(place, first.place))) first = { place, list }
    }
    if (first === undefined) break
    const { place, list } = first
    merged.push(place)
    list.at += 1
    if (list.at === list.places.length && list.at % rows === 0) list.places.push(...page(list.definition, place, rows))
  }
  return merged
}

function precedes(a: Place, b: Place): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.seq < b.seq)
}

export const ANY_ENQUEUED = `
select 1 from perdure_runs indexed by perdure_runs_enqueued
where status = 'ENQUEUED' and queue is null and definition = ? limit 1`
export const FIRST_DUE = `
select due_at from perdure_runs indexed by perdure_runs_due
where status = 'WAITING' and queue is null and definition = ? and due_at is not null order by due_at limit 1`

/** When the next run of these becomes claimable: `now` if one already is; null: none by time. */
export function nextDue(database: Database, definitions: readonly string[], now: EpochMs): EpochMs | null {
  let next: EpochMs | null = null
  for (const definition of definitions) {
    if (database.prepare(ANY_ENQUEUED).get(definition) !== undefined) return now
    const due = database.prepare(FIRST_DUE).get(definition)
    if (due !== undefined) next = Math.min(number(due[0]), next ?? Number.POSITIVE_INFINITY)
  }
  return next
}
