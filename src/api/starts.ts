/** How a start becomes a stored run: checks, the choice of where it runs, the commit, and its first delivery. */
import { ConfigurationError, InputMismatchError, UnknownDefinitionError } from '../core/errors.ts'
import { type Ids, sha256Hex } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { checkOptions } from '../core/options.ts'
import type { Hub } from '../runtime/hub.ts'
import type { Worker } from '../runtime/worker.ts'
import type { AcceptedRun, NewRun } from '../store/contract.ts'
import type { AnyDefinition, Behaviour } from './definition.ts'
import type { CheckedEngine } from './engine-options.ts'
import { checkStart, type StartOptions } from './start-options.ts'

export interface StartsOptions {
  readonly checked: CheckedEngine
  readonly hub: () => Promise<Hub>
  readonly worker: Worker
  readonly ids: Ids
}

interface Item {
  readonly input: unknown
  readonly options?: StartOptions | undefined
}

export class Starts {
  readonly #options: StartsOptions

  constructor(options: StartsOptions) {
    this.#options = options
  }

  async start(target: AnyDefinition | string, item: Item): Promise<AcceptedRun> {
    const [accepted] = await this.#submit([await this.#newRun(target, item)])
    invariant(accepted !== undefined, 'a start is answered')
    return accepted
  }

  async startMany(target: AnyDefinition | string, items: readonly Item[]): Promise<readonly AcceptedRun[]> {
    if (!Array.isArray(items)) {
      throw new ConfigurationError({
        option: 'startMany',
        problem: 'it takes a list',
        allowed: '[{ input, options? }, ...]',
      })
    }
    const runs: NewRun[] = []
    for (const item of items) checkOptions('startMany', item, ['input', 'options'])
    for (const item of items) runs.push(await this.#newRun(target, item))
    return runs.length === 0 ? [] : this.#submit(runs)
  }

  async #newRun(target: AnyDefinition | string, { input, options }: Item): Promise<NewRun> {
    const { checked, ids } = this.#options
    const { definition, behaviour } = this.#resolve(target)
    const { id, timeoutMs } = checkStart(options)
    if (behaviour.parseInput !== undefined) await behaviour.parseInput(input)
    const text = checked.codec.encode(input)
    return {
      id: id ?? ids.next(),
      definition: definition.name,
      kind: definition.kind,
      queue: null,
      input: text,
      inputHash: sha256Hex(checked.codec.canonical(text)),
      maxRecoveries: behaviour.maxRecoveries,
      timeoutMs: timeoutMs ?? behaviour.timeoutMs,
      claim: null,
    }
  }

  #resolve(target: AnyDefinition | string): { readonly definition: AnyDefinition; readonly behaviour: Behaviour } {
    const { behaviours } = this.#options.checked
    const name = nameOf(target)
    const found = behaviours.get(name)
    if (found !== undefined && (typeof target === 'string' || found.definition === target)) return found
    throw new UnknownDefinitionError({ name, known: [...behaviours.keys()] })
  }

  async #submit(runs: readonly NewRun[]): Promise<readonly AcceptedRun[]> {
    const { ids } = this.#options
    const hub = await this.#options.hub()
    const claimed = runs.map((run) => this.#claimHere(run))
    const begun = new Set<NewRun>()
    try {
      const outcome = await hub.submit({ type: 'enqueue', commandId: ids.next(), runs: claimed })
      if (outcome.type === 'mismatch') throw this.#mismatch(claimed, outcome)
      outcome.runs.forEach((accepted, index) => {
        const run = claimed[index]
        if (run === undefined || run.claim === null || !accepted.created) return
        begun.add(run)
        this.#begin(hub, run)
      })
      return outcome.runs
    } finally {
      for (const run of claimed) if (run.claim !== null && !begun.has(run)) this.#options.worker.giveUp()
    }
  }

  /** A run without a queue runs here, claimed in the commit that records it, if there is room. */
  #claimHere(run: NewRun): NewRun {
    const claim = this.#options.worker.reserve()
    return claim === undefined ? run : { ...run, claim }
  }

  #begin(hub: Hub, run: NewRun): void {
    const { id: runId, definition, input, claim, timeoutMs } = run
    invariant(claim !== null, 'a run that begins here was claimed')
    const deadlineAt = timeoutMs === null ? null : hub.store.clock.now() + timeoutMs
    this.#options.worker.begin({ runId, definition, token: claim.token, input, deadlineAt })
  }

  #mismatch(runs: readonly NewRun[], { id, definition }: { id: string; definition: string }): InputMismatchError {
    const asked = runs.find((run) => run.id === id)
    return new InputMismatchError({
      runId: id,
      definition: asked?.definition ?? definition,
      existingDefinition: definition,
    })
  }
}

/** What callers without types give may be anything. */
function nameOf(target: unknown): string {
  if (typeof target !== 'object' || target === null) return String(target)
  return 'name' in target ? String(target.name) : 'an object without a name'
}
