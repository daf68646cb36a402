/** How planned runs become stored ones: the commit, and where there is room here, their first delivery. */
import { ConfigurationError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { checkOptions } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import { refusalError } from '../runtime/refusal.ts'
import type { Worker } from '../runtime/worker.ts'
import type { AcceptedRun, NewRun } from '../store/contract.ts'
import type { AnyDefinition, Definition, Named } from './definition.ts'
import type { StartOptions } from './start-options.ts'
import type { StartPlanner } from './start-planner.ts'

export interface StartsOptions {
  readonly hub: () => Promise<Hub>
  readonly planner: StartPlanner
  readonly ids: Ids
  /** Runs what has no queue here and at once, if it has room; undefined: it waits in the store. */
  readonly worker: Pick<Worker, 'reserve' | 'begin' | 'giveUp'> | undefined
}

/** What a name stands for; where it is not known which names there are, they take and give `unknown`. */
export type Found<Ds extends readonly AnyDefinition[], N> = string extends Ds[number]['name']
  ? Definition<unknown, unknown, never>
  : Named<Ds, N>

/** One of many starts. */
export interface StartItem<I = unknown> {
  readonly input: I
  readonly options?: StartOptions | undefined
}

export class Starts {
  readonly #options: StartsOptions

  constructor(options: StartsOptions) {
    this.#options = options
  }

  async start(target: AnyDefinition | string, { input, options }: StartItem): Promise<AcceptedRun> {
    const run = await this.#options.planner.prepare({ target, input, options })
    const [accepted] = await this.#submit([run])
    invariant(accepted !== undefined, 'a start is answered')
    return accepted
  }

  async startMany(target: AnyDefinition | string, items: readonly StartItem[]): Promise<readonly AcceptedRun[]> {
    if (!Array.isArray(items)) {
      throw new ConfigurationError({
        option: 'startMany',
        problem: 'it takes a list',
        allowed: '[{ input, options? }, ...]',
      })
    }
    const { planner } = this.#options
    for (const item of items) checkOptions('startMany', item, ['input', 'options'])
    const runs: NewRun[] = []
    for (const { input, options } of items) runs.push(await planner.prepare({ target, input, options }))
    return runs.length === 0 ? [] : this.#submit(runs)
  }

  async #submit(planned: readonly NewRun[]): Promise<readonly AcceptedRun[]> {
    const { ids } = this.#options
    const hub = await this.#options.hub()
    const runs = planned.map((run) => (run.queue === null ? this.#claimHere(run) : run))
    const begun = new Set<NewRun>()
    try {
      const outcome = await hub.submit({ type: 'enqueue', commandId: ids.next(), runs })
      if (outcome.type !== 'accepted') throw refusalError(outcome, definitionOf(runs, outcome.id))
      outcome.runs.forEach((accepted, index) => {
        const run = runs[index]
        if (run === undefined || run.claim === null || !accepted.created) return
        begun.add(run)
        this.#begin(hub, run)
      })
      return outcome.runs
    } finally {
      for (const run of runs) if (run.claim !== null && !begun.has(run)) this.#options.worker?.giveUp()
    }
  }

  /** A run without a queue runs here, claimed in the commit that records it, if there is room. */
  #claimHere(run: NewRun): NewRun {
    const claim = this.#options.worker?.reserve()
    return claim === undefined ? run : { ...run, claim }
  }

  #begin(hub: Hub, run: NewRun): void {
    const { id: runId, definition, input, claim, timeoutMs } = run
    invariant(claim !== null, 'a run that begins here was claimed')
    const deadlineAt = timeoutMs === null ? null : hub.store.clock.now() + timeoutMs
    this.#options.worker?.begin({ runId, definition, token: claim.token, input, deadlineAt })
  }
}

function definitionOf(runs: readonly NewRun[], id: string): string {
  const asked = runs.find((run) => run.id === id)
  invariant(asked !== undefined, 'a refusal names a run of its command')
  return asked.definition
}
