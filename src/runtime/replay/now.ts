/** `ctx.now`: the instant by the store's clock, recorded, so that every replay sees the same. */
import type { Call } from './call.ts'
import type { Pass } from './pass.ts'

export function beginNow(pass: Pass, call: Call): void {
  pass.record(call, { failed: false, value: pass.codec.encode(new Date(pass.clock.now())) })
}
