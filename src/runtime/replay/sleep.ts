/**
 * `ctx.sleep` and `ctx.sleepUntil`: the absolute wake instant is recorded where the sleep begins and kept by every
 * replay, so that a crash neither shortens nor lengthens it. Its end is an outcome like any other, in its place in the
 * order of outcomes.
 */
import type { EpochMs } from '../../core/clock.ts'
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'

/** `wakeAt` is asked for only if the history has no instant yet. */
export function beginSleep(pass: Pass, call: Call, wakeAt: () => EpochMs): void {
  const recorded = pass.history.timers.get(call.position)
  const instant = recorded ?? wakeAt()
  const timer = pass.clock.at(instant, () => {
    pass.record(call, { failed: false, value: pass.codec.encode(undefined) })
  })
  pass.park(call, { awaits: 'time', wakeAt: instant, release: () => timer.cancel() })
  if (recorded === undefined) pass.recording.wakeAt(call, instant)
}
