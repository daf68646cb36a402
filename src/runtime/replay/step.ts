/**
 * `ctx.step`: runs a function with effects and records its outcome once, after its retries.
 *
 * At least once: the body runs again only if the process died, or lost its lease, between the effect and the record.
 * Attempts of a step are not recorded, only their number with the outcome; a crash starts them anew. What the attempt
 * that succeeds has staged (effects.ts) is committed with its record.
 */
import { SerializationError } from '../../core/errors.ts'
import type { Effect } from '../../store/commands.ts'
import type { EncodedValue } from '../../store/records.ts'
import { type AttemptPolicy, type FailedAttempt, RunningAttempt, runAttempts } from './attempts.ts'
import type { Call } from './call.ts'
import { type PrepareFollowUp, StagedEffects } from './effects.ts'
import type { Outcome } from './journal.ts'
import type { Pass } from './pass.ts'
import { insideStep } from './scope.ts'

/** `Target` and `Options` are what starts among the effects take. */
export interface StepWork<Target, Options> {
  readonly policy: AttemptPolicy
  readonly body: (step: RunningStep<Target, Options>) => unknown
  readonly prepare: PrepareFollowUp<Target, Options>
}

interface Returned {
  readonly type: 'returned'
  readonly value: EncodedValue
  readonly effects: readonly Effect[] | undefined
}

/** Runs the step's attempts and records the outcome. Never rejects. */
export function runStep<T, O>(pass: Pass, call: Call, work: StepWork<T, O>): Promise<void> {
  return runAttempts(pass, call, work.policy, {
    run: (attempt) => runAttempt(pass, call, work, attempt),
    succeeded: (end, attempt) => pass.record(call, succeeded(end, attempt)),
  })
}

function succeeded({ value, effects }: Returned, attempts: number): Outcome {
  return effects === undefined ? { failed: false, value, attempts } : { failed: false, value, attempts, effects }
}

async function runAttempt<T, O>(
  pass: Pass,
  call: Call,
  work: StepWork<T, O>,
  attempt: number,
): Promise<Returned | FailedAttempt> {
  const step = new RunningStep(pass, call, work.prepare, attempt)
  const leave = pass.enter(step)
  const running = step.finished(insideStep({ runId: pass.runId, step: call.name }, () => begun(work.body, step)))
  const settled = running.then(leave, leave)
  const { timeoutMs } = work.policy
  try {
    const finished = await (timeoutMs === undefined ? running : withTimeout(pass, call, step, timeoutMs, running))
    return encodeValue(pass, finished, settled)
  } catch (error) {
    step.end()
    return { type: 'failed', error, retryable: true, settled }
  }
}

/** The promise of a function that may also return or throw at once: its own if it is one, as steps are many. */
function begun<A>(body: (argument: A) => unknown, argument: A): Promise<unknown> {
  try {
    return Promise.resolve(body(argument))
  } catch (error) {
    return Promise.reject(error)
  }
}

/** What the function of a step has come to. */
interface Finished {
  readonly value: unknown
  readonly effects: readonly Effect[] | undefined
}

/** What a step's function is given. Its effects are only made if somebody asks for them. */
export class RunningStep<Target, Options> extends RunningAttempt {
  readonly #call: Call
  readonly #prepare: PrepareFollowUp<Target, Options>
  readonly #pass: Pass
  #staged: StagedEffects<Target, Options> | undefined
  #ended = false

  constructor(pass: Pass, call: Call, prepare: PrepareFollowUp<Target, Options>, attempt: number) {
    super(pass, call, attempt)
    this.#pass = pass
    this.#call = call
    this.#prepare = prepare
  }

  get effects(): StagedEffects<Target, Options> {
    if (this.#staged === undefined) {
      const { name: step, position } = this.#call
      this.#staged = new StagedEffects({ pass: this.#pass, position, step, prepare: this.#prepare })
      if (this.#ended) this.#staged.close()
    }
    return this.#staged
  }

  /** Waits for the function, and for what it has staged. */
  async finished(running: Promise<unknown>): Promise<Finished> {
    const value = await running
    this.end()
    return { value, effects: this.#staged === undefined ? undefined : await this.#staged.collect() }
  }

  /** The attempt is over: what it stages now would come too late. */
  end(): void {
    this.#ended = true
    this.#staged?.close()
  }
}

async function withTimeout<T>(
  pass: Pass,
  call: Call,
  step: RunningAttempt,
  timeoutMs: number,
  running: Promise<T>,
): Promise<T> {
  const timedOut = new Promise<never>((_, reject) => step.setTimeout(pass, call, timeoutMs, reject))
  try {
    return await Promise.race([running, timedOut])
  } finally {
    step.clearTimeout()
  }
}

/** A value that can't be stored fails the step, and would fail it again: it is not retried. */
function encodeValue(pass: Pass, { value, effects }: Finished, settled: Promise<unknown>): Returned | FailedAttempt {
  try {
    return { type: 'returned', value: pass.codec.encode(value), effects }
  } catch (error) {
    return { type: 'failed', error, retryable: !(error instanceof SerializationError), settled }
  }
}
