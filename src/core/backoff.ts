/** How long to wait before the next attempt: exponential, bounded, spread by jitter. */
import type { Random } from './random.ts'

export interface Backoff {
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  /** The fraction, from 0 to 1, by which a wait may be shorter or longer than computed. */
  readonly jitter: number
}

/**
 * The wait after attempt `attempt` (from 1) failed: `baseMs * factor ** (attempt - 1)`, at most `maxMs`, then spread
 * evenly over plus and minus `jitter`. Whole milliseconds, never negative, and never above `maxMs`.
 */
export function backoffMs(backoff: Backoff, attempt: number, random: Random): number {
  const { baseMs, factor, maxMs, jitter } = backoff
  if (baseMs === 0) return 0
  const wait = Math.min(baseMs * factor ** Math.max(0, attempt - 1), maxMs)
  const spread = jitter === 0 ? 1 : 1 + jitter * (2 * random.next() - 1)
  return Math.round(Math.min(wait * spread, maxMs, Number.MAX_SAFE_INTEGER))
}
