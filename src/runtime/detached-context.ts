/**
 * Runs the library's own loops outside every AsyncLocalStorage of its users. A loop that is started by a call
 * would otherwise keep the trace context of that caller for as long as it runs, and hand it to all later work.
 */
import { AsyncResource } from 'node:async_hooks'

/** Made when the module is loaded, before any user's context exists. */
const outside = new AsyncResource('perdure')

/** Calls `start` in the empty context; promises awaited and timers armed by it stay there. */
export function detached<T>(start: () => T): T {
  return outside.runInAsyncScope(start)
}
