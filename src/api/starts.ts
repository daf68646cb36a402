/** How planned runs become stored ones: the commit, and where there is room here, their first delivery. */
import { ConfigurationError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { checkOptions } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import { refusalError } from '../runtime/refusal.ts'
import type { Worker } from '../runtime/worker.ts'
import type { AcceptedRun, EnqueueCommand, EnqueueOutcome, NewClaim, NewRun } from '../store/contract.ts'
import { callerStartsOf, checkStartSql, type StartSql, type StartSqlItem, transactionOf } from './caller-starts.ts'
import type { AnyDefinition, Definition, Named } from './definition.ts'
import type { CallerTransaction, StartOptions } from './start-options.ts'
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
    const [accepted] = await this.#accept([run], options?.tx)
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
    const tx = transactionOf(items)
    const runs: NewRun[] = []
    for (const { input, options } of items) runs.push(await planner.prepare({ target, input, options }))
    return runs.length === 0 ? [] : this.#accept(runs, tx)
  }

  async startSql(target: AnyDefinition | string, item: StartSqlItem): Promise<StartSql> {
    const { options, onConflict } = checkStartSql(item.options)
    const run = await this.#options.planner.prepare({ target, input: item.input, options })
    const { store } = await this.#options.hub()
    const call = callerStartsOf(store, 'startSql').sql(run, this.#options.ids.next(), onConflict)
    return { ...call, id: run.id }
  }

  #accept(planned: readonly NewRun[], tx: CallerTransaction | undefined): Promise<readonly AcceptedRun[]> {
    return tx === undefined ? this.#submit(planned) : this.#submitWithin(tx, planned)
  }

  /** What the caller may never commit is begun by nobody, so it is always enqueued. */
  async #submitWithin(tx: CallerTransaction, runs: readonly NewRun[]): Promise<readonly AcceptedRun[]> {
    const hub = await this.#options.hub()
    const starts = callerStartsOf(hub.store, 'start.tx')
    const command: EnqueueCommand = { type: 'enqueue', commandId: this.#options.ids.next(), runs }
    const outcome = await starts.start(tx, runs, command.commandId)
    hub.lookAtStarts(command, outcome)
    return acceptedOf(runs, outcome)
  }

  async #submit(planned: readonly NewRun[]): Promise<readonly AcceptedRun[]> {
    const { ids } = this.#options
    const hub = await this.#options.hub()
    let slots = 0
    const runs = planned.map((run) => {
      const claim = run.queue === null ? this.#options.worker?.reserve() : undefined
      if (claim === undefined) return run
      slots += 1
      return claimed(run, claim)
    })
    try {
      const outcome = await hub.submit({ type: 'enqueue', commandId: ids.next(), runs })
      const answers = acceptedOf(runs, outcome)
      answers.forEach((accepted, index) => {
        const run = runs[index]
        if (run === undefined || run.claim === null || !accepted.created) return
        slots -= 1
        this.#begin(hub, run)
      })
      return answers
    } finally {
      for (; slots > 0; slots -= 1) this.#options.worker?.giveUp()
    }
  }

  #begin(hub: Hub, run: NewRun): void {
    const { id: runId, definition, input, claim, timeoutMs } = run
    invariant(claim !== null, 'a run that begins here was claimed')
    const deadlineAt = timeoutMs === null ? null : hub.store.clock.now() + timeoutMs
    this.#options.worker?.begin({ runId, definition, token: claim.token, input, deadlineAt })
  }
}

/**
 * The run with a claim: without a queue it runs here, claimed in the commit that records it. Written out, as most starts
 * without a queue make one: spreading costs several times as much.
 */
function claimed(run: NewRun, claim: NewClaim): NewRun {
  return {
    id: run.id,
    definition: run.definition,
    kind: run.kind,
    queue: run.queue,
    priority: run.priority,
    partitionKey: run.partitionKey,
    dedup: run.dedup,
    due: run.due,
    input: run.input,
    inputHash: run.inputHash,
    maxRecoveries: run.maxRecoveries,
    timeoutMs: run.timeoutMs,
    parentId: run.parentId,
    kv: run.kv,
    claim,
  }
}

function acceptedOf(runs: readonly NewRun[], outcome: EnqueueOutcome): readonly AcceptedRun[] {
  if (outcome.type === 'accepted') return outcome.runs
  throw refusalError(outcome, definitionOf(runs, outcome.id))
}

function definitionOf(runs: readonly NewRun[], id: string): string {
  const asked = runs.find((run) => run.id === id)
  invariant(asked !== undefined, 'a refusal names a run of its command')
  return asked.definition
}
