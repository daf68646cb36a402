/**
 * `ctx.waitForSignal`: waits until a signal comes for a key, or the time is over, whichever the store sees first.
 *
 * The wait itself is kept by the store, so a signal finds it whether or not the run is in memory. A crash between any two
 * commits leaves one of these states, from which the next pass goes on, since it looks at the wait that is there before
 * it does anything else:
 *
 * | what the store has | how it came | what the next pass does |
 * | --- | --- | --- |
 * | nothing | the wait was not opened, or its key was another run's, which nobody has been told yet | opens it |
 * | the wait, open, with the instant of its time-out | both were stored in one commit | waits on, until that instant |
 * | the wait, signalled | a signal came, before its time-out was acted upon | records the payload |
 * | the wait, expired | its time-out was acted upon, before a signal came | records the time-out |
 * | the instant alone | the run ended with its wait, and was requeued | opens the wait anew, until that instant |
 * | the outcome | the wait was removed in the same commit | delivers it |
 *
 * What the store says decides, never the pass: when the time is over, the pass asks it to close the wait, and is told of
 * a signal that has come meanwhile. A signal that comes later is buffered for whoever waits next.
 */
import type { EpochMs } from '../../core/clock.ts'
import { SignalKeyTakenError } from '../../core/errors.ts'
import type { WaitOutcome } from '../../store/commands.ts'
import type { EncodedValue } from '../../store/records.ts'
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'

/** How a wait for a signal ends: with what it carried, or by its time-out. */
export type SignalResult<T> = { readonly ok: true; readonly payload: T } | { readonly ok: false }

/** `expiresAt`: when its time is over, if it ever is; asked for only if the history has no instant yet. */
export async function beginWait(
  pass: Pass,
  call: Call,
  key: string,
  expiresAt: (() => EpochMs) | undefined,
): Promise<void> {
  const recorded = expiresAt && pass.history.timers.get(call.position)
  const wakeAt = recorded ?? expiresAt?.() ?? null
  const outcome = await pass.recording.openWait(call, key, recorded === undefined ? wakeAt : null)
  if (outcome?.type === 'waiting') park(pass, call, wakeAt)
  else if (outcome?.type === 'taken') {
    pass.recordError(call, new SignalKeyTakenError({ runId: pass.runId, key, holder: outcome.holder }))
  } else recordEnd(pass, call, outcome)
}

/** Until a signal comes, or the time is over. */
function park(pass: Pass, call: Call, wakeAt: EpochMs | null): void {
  const timer = wakeAt === null ? undefined : pass.clock.at(wakeAt, () => void expire(pass, call))
  const giveUp = pass.port.onSignal(call.position, (payload) => recordSignal(pass, call, payload))
  const release = (): void => {
    timer?.cancel()
    giveUp()
  }
  pass.park(call, { awaits: 'signal', wakeAt, release })
}

async function expire(pass: Pass, call: Call): Promise<void> {
  // The store alone says how the wait ends: what is heard meanwhile would be told twice.
  pass.unpark(call)
  recordEnd(pass, call, await pass.recording.closeWait(call))
}

/** undefined, or a claim that is lost: the pass has ended. */
function recordEnd(pass: Pass, call: Call, outcome: WaitOutcome | undefined): void {
  if (outcome?.type === 'signalled') recordSignal(pass, call, outcome.payload)
  else if (outcome?.type === 'expired') {
    const result: SignalResult<never> = { ok: false }
    pass.record(call, { failed: false, value: pass.codec.encode(result) })
  }
}

/**
 * The payload is decoded and encoded again, inside the result. That takes nothing from it (an error of a class that this
 * process doesn't know keeps its class, too); composing the text would need to know how the codec marks what is beyond
 * JSON. One that was nested as deeply as can be stored doesn't fit inside a result: then this is what the wait fails with.
 */
function recordSignal(pass: Pass, call: Call, payload: EncodedValue): void {
  try {
    const result: SignalResult<unknown> = { ok: true, payload: pass.codec.decode(payload) }
    pass.record(call, { failed: false, value: pass.codec.encode(result) })
  } catch (error) {
    pass.recordError(call, error)
  }
}
