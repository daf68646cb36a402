/** What the sources of a claim have to give, as one look sees it. */
import type { EpochMs } from '../../../core/clock.ts'
import { flag, number, numberOrNull, text, textOrNull } from '../../columns.ts'
import type { ClaimRequest, ClaimSource } from '../../contract.ts'
import { QUEUE_WIDTH, toQueue } from '../../queue-row.ts'
import type { QueueRecord } from '../../records.ts'
import type { Ledger } from '../ledger.ts'
import type { Row, Session } from '../session.ts'
import { listOf, toLedger } from './json.ts'
import { SURVEY } from './survey-sql.ts'

export interface Survey {
  readonly now: EpochMs
  /** Some run is held under a token of the request already, or under one between them. */
  readonly held: boolean
  readonly sources: readonly SurveyedSource[]
}

export interface SurveyedSource {
  readonly source: ClaimSource
  /** null: the internal queue, or one that is not registered. */
  readonly queue: QueueRecord | null
  /** Of lane '', unless the queue has lanes of its own: runs that count against its global limit, up to that. */
  readonly active: number
  readonly ledger: Ledger | null
  /** Enqueued runs of lane '', unless the queue has lanes of its own: as many as are wanted, and one more. */
  readonly starts: readonly Start[]
  /** Suspended runs that are due and within the global limit, as many as are wanted. */
  readonly resumes: readonly Resume[]
  /** Some delayed run is due. */
  readonly promotable: boolean
  /** When the next run is due, of those that are not due yet. */
  readonly nextDue: EpochMs | null
  /** Lanes that may have room, in the order of their turns. */
  readonly lanes: readonly SurveyedLane[]
  /** The rate limits of some lanes have opened. */
  readonly reopens: boolean
  /** When the next rate limit of a lane opens, of those that are known to be closed. */
  readonly nextOpening: EpochMs | null
}

export interface Start {
  readonly definition: string
  readonly version: string | null
  readonly seq: number
}
export interface Resume {
  readonly dueAt: EpochMs
  readonly seq: number
  readonly definition: string
  readonly lane: string
  /** Runs that count against the global limit of its lane, if it needs room there. */
  readonly active: number
}
export interface SurveyedLane {
  readonly lane: string
  /** In how many lists of lanes it stands. */
  readonly listed: number
  /** So many of its runs were read at most. */
  readonly depth: number
  readonly active: number
  readonly ledger: Ledger | null
  readonly starts: readonly Start[]
}

/** How far a survey looks. */
export interface Scope {
  /** Lanes of a queue. */
  readonly lanes: number
  /** Runs of a lane, at least. */
  readonly depth: number
  /** Suspended runs of a source, for each that is wanted. */
  readonly resumes: number
  /** Of each source: lanes that have nothing to start. */
  readonly noStart: ReadonlyMap<ClaimSource, ReadonlySet<string>>
}

/** `now`: null: the database's. */
export async function survey(
  session: Session,
  request: ClaimRequest,
  scope: Scope,
  now: EpochMs | null,
): Promise<Survey> {
  const { sources, definitions, tokens, owner, version } = request
  if (sources.length === 0) return { now: 0, held: false, sources: [] }
  const full = sources.map(fullLanes)
  const noStart = sources.map((source, n) => [...(full[n] ?? []), ...(scope.noStart.get(source) ?? [])])
  const rows = await session.query(SURVEY, [
    ...[now, [...new Set(definitions.map(({ name }) => name))], version === null, version, tokens.length],
    ...[scope.lanes, scope.depth, owner, tokens],
    ...[sources.map(({ queue }) => queue ?? ''), sources.map(({ room }) => Math.max(0, room))],
    ...[noStart.map((lanes) => JSON.stringify(lanes)), full.map((lanes) => JSON.stringify(lanes)), scope.resumes],
  ])
  const [first] = rows
  return {
    now: number(first?.[QUEUE_WIDTH]),
    held: flag(first?.[QUEUE_WIDTH + 1]) && tokens.length > 0,
    sources: sources.flatMap((source, n) => {
      const row = rows[n]
      return row === undefined ? [] : [toSource(source, row)]
    }),
  }
}

/** Lanes of which this process has its fill. */
function fullLanes({ lanes }: ClaimSource): readonly string[] {
  if (lanes === null) return []
  return [...lanes.running].filter(([, running]) => running >= lanes.limit).map(([lane]) => lane)
}

function toSource(source: ClaimSource, row: Row): SurveyedSource {
  const at = (n: number): unknown => row[QUEUE_WIDTH + 2 + n]
  return {
    source,
    queue: row[0] === null ? null : toQueue(row),
    active: number(at(0)),
    ledger: toLedger(parsed(at(1))),
    starts: listOf(parsed(at(2))).map(toStart),
    resumes: listOf(parsed(at(3))).map(toResume),
    promotable: flag(at(4)),
    nextDue: numberOrNull(at(5)),
    lanes: listOf(parsed(at(6))).map(toLane),
    reopens: flag(at(7)),
    nextOpening: numberOrNull(at(8)),
  }
}

function parsed(json: unknown): unknown {
  return json === null ? null : JSON.parse(text(json))
}

function toStart(value: unknown): Start {
  const [definition, version, seq] = listOf(value)
  return { definition: text(definition), version: textOrNull(version), seq: number(seq) }
}

function toResume(value: unknown): Resume {
  const [dueAt, seq, definition, lane, active] = listOf(value)
  return {
    dueAt: number(dueAt),
    seq: number(seq),
    definition: text(definition),
    lane: text(lane),
    active: numberOrNull(active) ?? 0,
  }
}

function toLane(value: unknown): SurveyedLane {
  const [lane, listed, depth, active, ledger, starts] = listOf(value)
  return {
    lane: text(lane),
    listed: number(listed),
    depth: number(depth),
    active: number(active),
    ledger: toLedger(ledger),
    starts: listOf(starts).map(toStart),
  }
}
