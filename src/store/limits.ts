/**
 * The rate limit of a lane as a pure function over its ledger of starts, shared by every store.
 *
 * Starts are numbered in order, and start n is allowed when start n - limit is older than the period. So in every
 * window of the length of the period there are at most `limit` of them, whatever became of the runs. Kept are the
 * newest `limit` starts and all that are younger than the period: a limit that is changed counts from those.
 */
import type { EpochMs } from '../core/clock.ts'

export interface RateLimit {
  readonly limit: number
  readonly periodMs: number
}

/** What the ledger of a lane says, of its newest `limit` starts. */
export interface RecentStarts {
  /** How many there are, up to `limit`. */
  readonly count: number
  /** The instants of the oldest of them, in order, as many as are asked about. */
  readonly oldest: readonly EpochMs[]
}

export interface RateRoom {
  /** How many more runs may start now, up to what was asked for. */
  readonly room: number
  /** When the next may start, if none may now; null: it is not known that one ever will, or one may now. */
  readonly opensAt: EpochMs | null
}

/**
 * Starts in the future were recorded before the clock was set back: the store dates them to now before it asks, so
 * that they hold the lane up for one period at most.
 */
export function rateRoom({ limit, periodMs }: RateLimit, recent: RecentStarts, wanted: number, now: EpochMs): RateRoom {
  let room = Math.max(0, limit - recent.count)
  for (const startedAt of recent.oldest) {
    if (startedAt + periodMs > now) break
    room += 1
  }
  const first = recent.oldest[0]
  const opensAt = room > 0 || first === undefined ? null : first + periodMs
  return { room: Math.min(room, wanted), opensAt }
}
