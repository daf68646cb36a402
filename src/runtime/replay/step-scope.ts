/** Knows whether code runs inside the body of a step, however deep in its awaits. */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface StepScope {
  readonly runId: string
  readonly step: string
}

const scope = new AsyncLocalStorage<StepScope>()

export function insideStep<T>(of: StepScope, body: () => T): T {
  return scope.run(of, body)
}

/** The step of this run that the caller is in the body of; undefined outside. */
export function enclosingStep(runId: string): StepScope | undefined {
  const enclosing = scope.getStore()
  return enclosing?.runId === runId ? enclosing : undefined
}
