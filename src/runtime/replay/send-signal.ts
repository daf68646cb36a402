/**
 * `ctx.sendSignal`: the store sends the signal and records what became of it in one commit, so it is sent once, however
 * often the run is replayed.
 */
import type { Argument } from './argument.ts'
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'

export async function beginSendSignal(pass: Pass, call: Call, key: string, payload: Argument): Promise<void> {
  if ('refusal' in payload) return pass.recordError(call, payload.refusal)
  await pass.recording.perform(call, { type: 'signal', key, payload: payload.text })
}
