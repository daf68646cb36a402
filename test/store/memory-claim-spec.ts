/**
 * What a claim must give, by the words of the contract and nothing else: it looks at every run for every token. The
 * memory store finds the same through its indexes.
 */
import type { ClaimRequest, ClaimSource } from '../../src/store/contract.ts'
import type { QueueRecord, RunRecord } from '../../src/store/records.ts'

/** What lasts from claim to claim: starts of each lane, and since when lanes wait for their turn. */
export interface Memory {
  readonly starts: Map<string, number[]>
  readonly turns: Map<string, number>
}

export interface Expected {
  readonly ids: readonly string[]
  readonly nextAt: number | null
  /** A run that only tokens or room are wanting for is left: then not every instant of a rate limit need be known. */
  readonly moreToStart: boolean
}

interface View {
  rows: readonly RunRecord[]
  readonly queues: readonly QueueRecord[]
  readonly request: ClaimRequest
  readonly now: number
  readonly memory: Memory
  readonly given: RunRecord[]
}

export function expectedClaim(view: Omit<View, 'given'>): Expected {
  const claim: View = { ...view, given: [] }
  const { request } = claim
  for (const token of request.tokens)
    claim.given.push(...claim.rows.filter((run) => isHeld(run) && run.token === token))
  const free = request.tokens.filter((token) => !claim.given.some((run) => run.token === token))
  for (const source of request.sources) if (!isPaused(claim, source)) advance(claim, source)
  let turn = 0
  for (const token of free) {
    const due = byPlace(request.sources.flatMap((source) => resumable(claim, source)))
    if (due[0] !== undefined) {
      take(claim, due[0], token)
      continue
    }
    for (let tries = 0; tries < request.sources.length; tries++) {
      const source = request.sources[turn % request.sources.length]
      turn += 1
      const run = source === undefined ? undefined : nextStart(claim, source)
      if (run === undefined) continue
      take(claim, run, token)
      break
    }
  }
  return { ids: claim.given.map(({ id }) => id), ...instants(claim) }
}

/** Lanes that had nothing to claim, and have now, get in line, by their oldest run or in the order given. */
export function getInLine(memory: Memory, before: readonly RunRecord[], after: readonly RunRecord[]): void {
  const had = new Set(before.filter(isEnqueued).map(laneOf))
  for (const run of after.filter(isEnqueued)) {
    if (had.has(laneOf(run))) continue
    had.add(laneOf(run))
    memory.turns.set(laneOf(run), Math.max(0, ...memory.turns.values()) + 1)
  }
}

function advance(claim: View, { queue }: ClaimSource): void {
  const { rows, memory, now } = claim
  for (const [lane, starts] of memory.starts) {
    if (lane.startsWith(`${queue} `))
      memory.starts.set(
        lane,
        starts.map((at) => Math.min(at, now)),
      )
  }
  const promoted = byPlace(
    rows.filter((run) => run.status === 'DELAYED' && (run.dueAt ?? 0) <= now && isOpen(claim, run, queue)),
  ).map((run): RunRecord => ({ ...run, status: 'ENQUEUED', dueAt: null }))
  getInLine(memory, rows, promoted)
  claim.rows = rows.map((run) => promoted.find(({ id }) => id === run.id) ?? run)
}

function take(claim: View, run: RunRecord, token: string): void {
  const { memory, now, request } = claim
  const version = run.version ?? request.version
  const taken: RunRecord = { ...run, status: 'PENDING', dueAt: null, token, version }
  claim.rows = claim.rows.map((row) => (row.id === run.id ? taken : row))
  claim.given.push(taken)
  if (run.status !== 'ENQUEUED') return
  memory.turns.set(laneOf(run), Math.max(0, ...memory.turns.values()) + 1)
  if (queueOf(claim, run)?.rateLimit != null) memory.starts.set(laneOf(run), [...startsOf(claim, run), now])
}

function resumable(claim: View, source: ClaimSource): readonly RunRecord[] {
  const isDue = ({ status, dueAt }: RunRecord): boolean => status === 'WAITING' && dueAt !== null && dueAt <= claim.now
  return claim.rows.filter((run) => {
    if (!isDue(run) || !isOpen(claim, run, source.queue) || !hasRoom(claim, source, run)) return false
    return queueOf(claim, run)?.releaseWhileWaiting !== true || hasGlobalRoom(claim, run)
  })
}

function nextStart(claim: View, source: ClaimSource): RunRecord | undefined {
  const startable = claim.rows.filter(
    (run) => hasRoom(claim, source, run) && isStartable(claim, run, source.queue) && opensAt(claim, run) === null,
  )
  const turnOf = (run: RunRecord): number => claim.memory.turns.get(laneOf(run)) ?? 0
  return startable.toSorted((a, b) => turnOf(a) - turnOf(b) || a.rank - b.rank || a.seq - b.seq)[0]
}

function instants(claim: View): Pick<Expected, 'nextAt' | 'moreToStart'> {
  const found: number[] = []
  let moreToStart = false
  for (const { queue } of claim.request.sources.filter((source) => !isPaused(claim, source))) {
    for (const run of claim.rows.filter((row) => isOpen(claim, row, queue))) {
      if (run.dueAt !== null && run.dueAt > claim.now) found.push(run.dueAt)
      if (!isStartable(claim, run, queue)) continue
      const at = opensAt(claim, run)
      if (at === null) moreToStart = true
      else found.push(at)
    }
  }
  return { nextAt: found.length === 0 ? null : Math.min(...found), moreToStart }
}

/** But for the rate limit and the room of the process. */
function isStartable(claim: View, run: RunRecord, queue: string | null): boolean {
  return run.status === 'ENQUEUED' && isOpen(claim, run, queue) && hasGlobalRoom(claim, run)
}

function isOpen({ request }: View, run: RunRecord, queue: string | null): boolean {
  if (run.queue !== queue || run.lane === null) return false
  if (!request.definitions.some(({ name }) => name === run.definition)) return false
  return request.version === null || run.version === null || run.version === request.version
}

function hasRoom(claim: View, source: ClaimSource, run: RunRecord): boolean {
  if (isPaused(claim, source)) return false
  const given = claim.given.filter(({ queue }) => queue === source.queue)
  if (given.length >= source.room) return false
  if (source.lanes === null || run.lane === null) return true
  const running = source.lanes.running.get(run.lane) ?? 0
  return running + given.filter(({ lane }) => lane === run.lane).length < source.lanes.limit
}

function hasGlobalRoom(claim: View, run: RunRecord): boolean {
  const queue = queueOf(claim, run)
  if (queue === undefined || queue.globalConcurrency === null) return true
  const counts = ({ status }: RunRecord): boolean =>
    status === 'PENDING' || (status === 'WAITING' && !queue.releaseWhileWaiting)
  return claim.rows.filter((row) => laneOf(row) === laneOf(run) && counts(row)).length < queue.globalConcurrency
}

/** Start n is allowed when start n - limit is older than the period. null: now. */
function opensAt(claim: View, run: RunRecord): number | null {
  const rate = queueOf(claim, run)?.rateLimit
  if (rate == null) return null
  const decisive = startsOf(claim, run).at(-rate.limit)
  return decisive === undefined || decisive + rate.periodMs <= claim.now ? null : decisive + rate.periodMs
}

function startsOf({ memory, now }: View, run: RunRecord): readonly number[] {
  return (memory.starts.get(laneOf(run)) ?? []).map((at) => Math.min(at, now))
}

function isPaused({ queues }: View, source: ClaimSource): boolean {
  return queues.some(({ name, paused }) => name === source.queue && paused)
}

function queueOf({ queues }: View, run: RunRecord): QueueRecord | undefined {
  return queues.find(({ name }) => name === run.queue)
}

function isHeld({ status }: RunRecord): boolean {
  return status === 'PENDING'
}

function isEnqueued({ status, lane }: RunRecord): boolean {
  return status === 'ENQUEUED' && lane !== null
}

function laneOf({ queue, lane }: RunRecord): string {
  return `${queue} ${lane}`
}

function byPlace(runs: readonly RunRecord[]): readonly RunRecord[] {
  return runs.toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.seq - b.seq)
}
