/**
 * `step.effects`: what an attempt of a step stages is committed with the record of its success, once, or not at all. What
 * a failed attempt has staged is forgotten, and so is what one had staged whose process died.
 *
 * Everything is checked and encoded as it is staged, so that a mistake is thrown where it is made, and an object that is
 * changed later is stored as it was.
 */
import { ConfigurationError } from '../../core/errors.ts'
import { kvValue } from '../../core/kv-value.ts'
import { checkName, checkOwnName } from '../../core/names.ts'
import type { Effect, KvDelete, KvPut, NewRun } from '../../store/commands.ts'
import { followUpId } from './child.ts'
import type { Pass } from './pass.ts'

/** What a follow-up is stored as; rejects with what starting it would be refused with. */
export type PrepareFollowUp<Target, Options> = (
  start: { readonly target: Target; readonly input: unknown; readonly options: Options | undefined },
  placing: { readonly id: string; readonly parentId: null },
) => Promise<NewRun>

/** The attempt that stages. */
export interface Staging<Target, Options> {
  readonly pass: Pass
  readonly position: number
  readonly step: string
  readonly prepare: PrepareFollowUp<Target, Options>
}

const IN_TIME = 'calls that are made before the function of the step returns'
const REJECT_ONLY = "dedupPolicy: 'reject', or ctx.start outside of the step"

/** `Target` and `Options` are what starts take. */
export class StagedEffects<Target, Options> {
  readonly #staging: Staging<Target, Options>
  /** One of each key: of two puts the later counts. */
  readonly #changes = new Map<string, KvPut | KvDelete>()
  /** In the order staged; undefined: a start that is being prepared, or has been refused. */
  readonly #others: (Effect | undefined)[] = []
  /** Starts under way. */
  readonly #starting = new Set<Promise<unknown>>()
  #started = 0
  #closed = false

  constructor(staging: Staging<Target, Options>) {
    this.#staging = staging
  }

  put(key: string, value: unknown): void {
    this.#assertOpen('put')
    checkOwnName('KV key', key)
    const { codec } = this.#staging.pass
    this.#change({ type: 'put', key, ...kvValue(codec, key, value) })
  }

  delete(key: string): void {
    this.#assertOpen('delete')
    checkOwnName('KV key', key)
    this.#change({ type: 'delete', key })
  }

  sendSignal(key: string, payload?: unknown): void {
    this.#assertOpen('sendSignal')
    checkName('signal key', key)
    this.#others.push({ type: 'signal', key, payload: this.#staging.pass.codec.encode(payload) })
  }

  /** Resolves to the id of the run that will be there; rejects if the start is refused. */
  start(target: Target, input?: unknown, options?: Options): Promise<string> {
    const started = this.#start(target, input, options)
    this.#starting.add(started)
    // One that is refused while the function still runs is that function's to deal with.
    const leave = (): void => void (this.#closed || this.#starting.delete(started))
    started.then(leave, leave)
    return started
  }

  /** Nothing can be staged from now on. */
  close(): void {
    this.#closed = true
  }

  /** All that was staged, of an attempt that has succeeded. Rejects if one of its starts is refused only now. */
  async collect(): Promise<readonly Effect[] | undefined> {
    await Promise.all(this.#starting)
    const effects = [...this.#changes.values(), ...this.#others.filter((effect) => effect !== undefined)]
    return effects.length === 0 ? undefined : effects
  }

  async #start(target: Target, input: unknown, options: Options | undefined): Promise<string> {
    this.#assertOpen('start')
    const { pass, position, prepare } = this.#staging
    const id = followUpId(pass, position, this.#started++)
    const place = this.#others.push(undefined) - 1
    // The object may be changed before it is looked at.
    const given: unknown = pass.codec.decode(pass.codec.encode(input))
    const run = await pass.recording.patiently(() => prepare({ target, input: given, options }, { id, parentId: null }))
    if (run === undefined) throw new DOMException('The run is over.', 'AbortError')
    if (run.dedup?.policy === 'returnExisting') {
      throw this.#refusal('start', 'which run there will be is only known once the step is recorded', REJECT_ONLY)
    }
    this.#others[place] = { type: 'start', run }
    return run.id
  }

  #change(change: KvPut | KvDelete): void {
    const staged = this.#changes.get(change.key)
    if (staged !== undefined && staged.type !== change.type) {
      throw this.#refusal(change.type, `the KV key '${change.key}' is both put and deleted by one attempt`)
    }
    this.#changes.set(change.key, change)
  }

  #assertOpen(method: string): void {
    if (this.#closed)
      throw this.#refusal(method, 'it was called after the attempt had ended, so nothing would come of it')
  }

  #refusal(method: string, problem: string, allowed = IN_TIME): ConfigurationError {
    const { step, pass } = this.#staging
    const option = `step.effects.${method} in step '${step}' of run ${pass.runId}`
    return new ConfigurationError({ option, problem, allowed })
  }
}
