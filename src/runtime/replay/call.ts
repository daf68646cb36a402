/** A durable call as its pass sees it: a position, what it asks for, and the promise its body awaits. */
import { AsyncResource } from 'node:async_hooks'
import type { RecordedCall } from './history.ts'

export interface CallRequest {
  /** 'step', 'sleep', 'now', ... */
  readonly verb: string
  readonly name: string
  /** Begins the work of a call that has no recorded outcome. Called once, when the pass is live. */
  readonly begin: (call: Call) => void
  /** The public method called, so that a call site can be told without its own frames. */
  readonly method: (...args: never[]) => unknown
  /** What the body gets of the recorded value; by default that value itself. */
  readonly present?: (value: unknown) => unknown
}

export class Call {
  readonly verb: string
  readonly name: string
  /** Tells calls of the same name in different chains of a body apart (scope.ts). */
  readonly lineage: number
  readonly begin: (call: Call) => void
  /** Set when the call takes its position; -1 before. */
  position = -1
  /** Made in the turn that follows a delivery, and not what the history has at the position it would have taken. */
  mismatched = false
  /** Where user code made the call; only told where somebody will read it. */
  site: string | undefined
  readonly promise: Promise<unknown>
  readonly #present: CallRequest['present']
  #resolve: (value: unknown) => void = () => {}
  #reject: (error: unknown) => void = () => {}

  constructor(request: CallRequest, lineage: number) {
    this.verb = request.verb
    this.name = request.name
    this.lineage = lineage
    this.#present = request.present
    // Begun by the pass, but in the async context of the caller: a step belongs to the trace its body is in.
    const caller = new AsyncResource('perdure', { requireManualDestroy: true })
    this.begin = (call) => caller.runInAsyncScope(request.begin, undefined, call)
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  settle(failed: boolean, value: unknown): void {
    if (failed) {
      // A call whose promise the body drops may fail without taking the process down; the record tells of it.
      this.promise.catch(() => {})
      this.#reject(value)
    } else {
      this.#resolve(this.#present === undefined ? value : this.#present(value))
    }
  }

  /** The same verb and name. */
  resembles(recorded: RecordedCall): boolean {
    return this.verb === recorded.verb && this.name === recorded.name
  }
}

/** How messages name a call: `step 'charge'`, `sleep`. */
export function describeCall(call: RecordedCall): string {
  return call.name === '' ? call.verb : `${call.verb} '${call.name}'`
}

/** `file:line:column` of the code that called `method`; undefined where the engine doesn't tell. */
export function callSite(method: (...args: never[]) => unknown): string | undefined {
  const holder: { stack?: string } = {}
  Error.captureStackTrace(holder, method)
  const frame = holder.stack?.split('\n')[1]?.trim()
  return frame?.replace(/^at /, '')
}
