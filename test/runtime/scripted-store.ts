/**
 * A store that does what a script says: answers late, loses answers, is unavailable, answers for a prefix, refuses
 * marked commands. It checks what every store may rely on, and remembers what was applied.
 */
import { expect } from 'vitest'
import { StoreUnavailableError } from '../../src/core/errors.ts'
import type { WritableStore } from '../../src/runtime/committer/committer.ts'
import type { Command, Outcome } from '../../src/store/contract.ts'
import { turns } from './fast-scheduler.ts'

export interface Act {
  readonly delayTurns: number
  /** `lost`: applied, and then the answer is lost. */
  readonly kind: 'ok' | 'unavailable' | 'lost' | 'prefix'
}

/** A text that holds this is refused by the database. */
export const REFUSED = '!'
export const refusal = (text: string): Error => new Error(`refused ${text}`)

export class ScriptedStore implements WritableStore {
  readonly name = 'scripted'
  readonly batches: (readonly Command[])[] = []
  /** Every effect, in the order applied: the texts of entries, settlements and ids of commands. */
  readonly applied: string[] = []
  readonly #script: Act[]
  #calls = 0
  /** A batch whose answer was lost or that was never tried: it has to come again as it was. */
  #again: readonly Command[] | null = null
  /** Effects that were applied without an answer. */
  readonly #unanswered = new Set<string>()

  constructor(script: readonly Act[] = []) {
    this.#script = [...script]
  }

  async commit(commands: readonly Command[]): Promise<readonly Outcome[]> {
    expect(++this.#calls, 'one batch in flight').toBe(1)
    try {
      return await this.#commit(commands)
    } finally {
      this.#calls -= 1
    }
  }

  async #commit(commands: readonly Command[]): Promise<readonly Outcome[]> {
    this.batches.push(commands)
    checkBatch(commands)
    if (this.#again !== null) expect(commands, 'an identical resend').toEqual(this.#again)
    this.#again = null
    const act = this.#script.shift() ?? { delayTurns: 0, kind: 'ok' }
    await turns(act.delayTurns)
    if (act.kind === 'unavailable') {
      this.#again = commands
      throw new StoreUnavailableError({ store: this.name, problem: 'gone' })
    }
    const bad = commands.flatMap(effectsOf).find((effect) => effect.includes(REFUSED))
    if (bad !== undefined) throw refusal(commands.length === 1 ? bad : 'somewhere in the batch')
    const count = act.kind === 'prefix' ? Math.ceil(commands.length / 2) : commands.length
    const outcomes = commands.slice(0, count).map((command) => this.#apply(command, act.kind === 'lost'))
    if (act.kind !== 'lost') return outcomes
    this.#again = commands
    throw new StoreUnavailableError({ store: this.name, problem: 'connection lost' })
  }

  #apply(command: Command, answerIsLost: boolean): Outcome {
    if ('token' in command && command.token.endsWith('-lost')) return { type: 'claimLost' }
    const effects = effectsOf(command)
    const resent = effects.filter((effect) => this.applied.includes(effect))
    for (const effect of resent) expect(this.#unanswered, 'applied again').toContain(effect)
    this.applied.push(...effects.filter((effect) => !resent.includes(effect)))
    for (const effect of effects) {
      if (answerIsLost) this.#unanswered.add(effect)
      else this.#unanswered.delete(effect)
    }
    return outcomeOf(command)
  }

  claim: WritableStore['claim'] = async () => []
  renew: WritableStore['renew'] = async () => ({ lost: [], cancelRequested: [] })
  reclaim: WritableStore['reclaim'] = async () => []
  registerProcess: WritableStore['registerProcess'] = async () => {}
  removeProcesses: WritableStore['removeProcesses'] = async () => {}
}

function checkBatch(commands: readonly Command[]): void {
  const keys = commands.flatMap(keysOf)
  expect(new Set(keys).size, 'at most one command for a key').toBe(keys.length)
  expect(commands.length).toBeGreaterThan(0)
  expect(commands.length).toBeLessThanOrEqual(1_000)
  const text = commands.flatMap(effectsOf).reduce((length, effect) => length + effect.length, 0)
  if (commands.length > 1) expect(text).toBeLessThanOrEqual(4 * 1024 * 1024)
}

function keysOf(command: Command): readonly string[] {
  return command.type === 'enqueue' ? [...new Set(command.runs.map((run) => run.id))] : [command.runId]
}

export function effectsOf(command: Command): readonly string[] {
  switch (command.type) {
    case 'enqueue':
      return command.runs.map((run) => run.input)
    case 'checkpoint':
      return command.entries.map((entry) => entry.value ?? '')
    case 'settle':
      return [
        ...command.entries.map((entry) => entry.value ?? ''),
        command.settlement.type === 'succeed' ? command.settlement.output : command.settlement.type,
      ]
    default:
      return [command.commandId]
  }
}

/** An outcome that only the command's own caller can take for its own. */
function outcomeOf(command: Command): Outcome {
  switch (command.type) {
    case 'enqueue':
      return { type: 'accepted', runs: command.runs.map(({ id }) => ({ id, created: true, status: 'ENQUEUED' })) }
    case 'checkpoint':
      return { type: 'applied', status: 'PENDING', ending: null, cancelRequested: false }
    case 'settle': {
      const output = command.settlement.type === 'succeed' ? command.settlement.output : ''
      return { type: 'applied', status: 'SUCCESS', ending: { status: 'SUCCESS', output }, cancelRequested: false }
    }
    case 'cancel':
      return { type: 'requested', owner: command.commandId, token: null }
    case 'requeue':
      return { type: 'refused', status: null }
  }
}
