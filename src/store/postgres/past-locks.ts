/** Does something to many rows, of which others may have locked some for long. */
import { realScheduler } from '../../core/scheduler.ts'
import { LockedError } from './session.ts'

/**
 * Calls `attempt` with all items, and, while it fails on a lock, with each half of them, so that in the end only those
 * are left out that are locked themselves, or for which there was no more time after `forMs`.
 */
export async function pastLocks<T>(
  items: readonly T[],
  forMs: number,
  attempt: (items: readonly T[]) => Promise<void>,
): Promise<void> {
  const until = realScheduler.monotonic() + forMs
  const waiting = [items]
  for (let some = waiting.pop(); some !== undefined; some = waiting.pop()) {
    if (some.length === 0) continue
    try {
      await attempt(some)
    } catch (error) {
      if (!(error instanceof LockedError)) throw error
      if (realScheduler.monotonic() >= until) return
      if (some.length === 1) continue
      const half = Math.ceil(some.length / 2)
      waiting.push(some.slice(half), some.slice(0, half))
    }
  }
}
