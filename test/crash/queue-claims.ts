/**
 * Claims as the store has recorded them: from the instant of the claim to that of the settlement, or of the reclaim, in
 * milliseconds of its clock. A run that was suspended in between counts throughout, as it does for a global limit.
 */
import type { Client, Run } from '../../src/index.ts'
import type { Note } from './journal.ts'
import { laneOf } from './queue-work.ts'

export interface Claim {
  readonly runId: string
  readonly outcome: string
  readonly from: number
  /** Infinity while it goes on. */
  readonly to: number
}

/** Of all runs of these queues. */
export async function claimsOf({ runs }: Pick<Client, 'runs'>, queues: Iterable<string>): Promise<readonly Claim[]> {
  const claims: Claim[] = []
  for (const queue of queues) {
    for await (const { id: runId, attempt, crashes, status } of runsOf(runs, queue)) {
      // Most have never been claimed.
      if (status === 'ENQUEUED' && attempt === 0 && crashes === 0) continue
      for (const { outcome, startedAt, endedAt } of await runs.attempts(runId)) {
        if (startedAt === undefined) continue
        claims.push({ runId, outcome, from: startedAt.getTime(), to: endedAt?.getTime() ?? Number.POSITIVE_INFINITY })
      }
    }
  }
  return claims
}

/** Newest first. */
export async function* runsOf(runs: Client['runs'], queue: string): AsyncGenerator<Run> {
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await runs.list({ queue, limit: 1_000, ...(cursor === undefined ? {} : { cursor }) })
    yield* page.runs
    cursor = page.cursor
  }
}

/** How many claims there were at once, at most. One that ends in the millisecond in which another begins came first. */
export function mostAtOnce(claims: readonly Claim[]): number {
  // One that begins and ends in the same millisecond can't be said to overlap another.
  const lasting = claims.filter(({ from, to }) => to > from)
  const changes = lasting.flatMap(({ from, to }) => [
    { at: from, by: 1 },
    { at: to, by: -1 },
  ])
  changes.sort((a, b) => a.at - b.at || a.by - b.by)
  let count = 0
  let most = 0
  for (const { by } of changes) {
    count += by
    most = Math.max(most, count)
  }
  return most
}

/** The instants of the claims, in order: what a rate limit counts, a crashed attempt included. */
export function startsOf(claims: readonly Claim[]): readonly number[] {
  return claims.map(({ from }) => from).sort((a, b) => a - b)
}

/** Those of one lane. */
export function claimsIn(lane: string, claims: readonly Claim[]): readonly Claim[] {
  return claims.filter(({ runId }) => laneOf(runId) === lane)
}

/**
 * The longest that a claim took until the first line of its run was written. A rate limit holds for claims: a window
 * between first lines is shorter than the one between the claims by what the first of them took.
 */
export function lagOf(notes: readonly Note[], claims: readonly Claim[]): number {
  const begun = new Map<string, number[]>()
  for (const { what, key, value } of notes) {
    if (what === 'begin') begun.set(key, [...(begun.get(key) ?? []), Number(value)])
  }
  let longest = 0
  for (const { runId, from, to } of claims) {
    const first = begun.get(runId)?.find((at) => at > from - 2 && at <= to + 2)
    if (first !== undefined) longest = Math.max(longest, first - from)
  }
  return longest
}
