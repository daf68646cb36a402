/**
 * Waits for a lock without blocking the event loop: SQLite's own busy timeout would freeze the host for as long as
 * another process writes.
 */
import { realRandom } from '../../core/random.ts'
import { realScheduler } from '../../core/scheduler.ts'

const FIRST_PAUSE_MS = 1
const LONGEST_PAUSE_MS = 25

export interface Patience {
  readonly isBusy: (error: unknown) => boolean
  /** After this much real time the last error is thrown. */
  readonly giveUpAfterMs: number
}

/** Tries until it isn't busy; pauses grow and are jittered, so that rivals don't keep meeting. */
export async function whileBusy<T>(attempt: () => T, { isBusy, giveUpAfterMs }: Patience): Promise<T> {
  const start = realScheduler.monotonic()
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error) || realScheduler.monotonic() - start >= giveUpAfterMs) throw error
    }
    const jittered = pauseMs * (0.5 + realRandom.next())
    await new Promise<void>((resolve) => {
      realScheduler.after(jittered, resolve)
    })
  }
}
