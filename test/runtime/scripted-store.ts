/**
 * A store that does what a script says: answers late, loses answers, is unavailable, answers for a prefix, refuses
 * marked commands. It checks what every store may rely on, and remembers what was applied.
 */
import { expect } from 'vitest'
import { StoreUnavailableError } from '../../src/core/errors.ts'
import type { WritableStore } from '../../src/runtime/committer/committer.ts'
import type { Command, CommitOutcome, NewCheckpoint, NewRun, Outcome } from '../../src/store/contract.ts'
import { turns } from './fast-scheduler.ts'

export interface Act {
  readonly delayTurns: number
  /**
   * `lost`: applied, and then the answer is lost. `blocked`: some commands, those that are refused among them, go on by
   * themselves; `blockedInVain`: they come to nothing.
   */
  readonly kind: 'ok' | 'unavailable' | 'lost' | 'prefix' | 'blocked' | 'blockedInVain'
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
  /** Keys of commands that go on by themselves. */
  readonly #blocked = new Set<string>()

  constructor(script: readonly Act[] = []) {
    this.#script = [...script]
  }

  async commit(commands: readonly Command[]): Promise<readonly CommitOutcome[]> {
    expect(++this.#calls, 'one batch in flight').toBe(1)
    try {
      return await this.#commit(commands)
    } finally {
      this.#calls -= 1
    }
  }

  async #commit(commands: readonly Command[]): Promise<readonly CommitOutcome[]> {
    this.batches.push(commands)
    checkBatch(commands)
    for (const key of commands.flatMap(keysOf)) expect(this.#blocked, 'its key is taken').not.toContain(key)
    if (this.#again !== null) expect(commands, 'an identical resend').toEqual(this.#again)
    this.#again = null
    const act = this.#script.shift() ?? { delayTurns: 0, kind: 'ok' }
    await turns(act.delayTurns)
    if (act.kind === 'unavailable') {
      this.#again = commands
      throw new StoreUnavailableError({ store: this.name, problem: 'gone' })
    }
    if (act.kind === 'blocked' || act.kind === 'blockedInVain') {
      return commands.map((command, index) => {
        const stays = index % 2 === 1 && refusedOf(command) === undefined
        return stays ? this.#apply(command, false) : this.#block(command, act)
      })
    }
    const bad = commands.map(refusedOf).find((text) => text !== undefined)
    if (bad !== undefined) throw refusal(commands.length === 1 ? bad : 'somewhere in the batch')
    const count = act.kind === 'prefix' ? Math.ceil(commands.length / 2) : commands.length
    const outcomes = commands.slice(0, count).map((command) => this.#apply(command, act.kind === 'lost'))
    if (act.kind !== 'lost') return outcomes
    this.#again = commands
    throw new StoreUnavailableError({ store: this.name, problem: 'connection lost' })
  }

  #block(command: Command, { delayTurns, kind }: Act): CommitOutcome {
    for (const key of keysOf(command)) this.#blocked.add(key)
    const goOn = async (): Promise<Outcome> => {
      await turns(2 + 2 * delayTurns)
      for (const key of keysOf(command)) this.#blocked.delete(key)
      if (kind === 'blockedInVain') throw new StoreUnavailableError({ store: this.name, problem: 'gone' })
      const bad = refusedOf(command)
      if (bad !== undefined) throw refusal(bad)
      return this.#apply(command, false)
    }
    return { type: 'blocked', outcome: goOn() }
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

  claim: WritableStore['claim'] = async () => ({ runs: [], nextAt: null })
  renew: WritableStore['renew'] = async () => ({ lost: [], cancelRequested: [] })
  reclaim: WritableStore['reclaim'] = async () => ({ runs: [], rippled: false })
  sweep: WritableStore['sweep'] = async () => ({ removed: 0, nextAt: null })
  registerQueues: WritableStore['registerQueues'] = async () => []
  changeQueue: WritableStore['changeQueue'] = async () => undefined
  registerProcess: WritableStore['registerProcess'] = async () => {}
  removeProcesses: WritableStore['removeProcesses'] = async () => {}
}

function refusedOf(command: Command): string | undefined {
  return effectsOf(command).find((effect) => effect.includes(REFUSED))
}

function checkBatch(commands: readonly Command[]): void {
  const keys = commands.flatMap(keysOf)
  expect(new Set(keys).size, 'at most one command for a key').toBe(keys.length)
  expect(commands.length).toBeGreaterThan(0)
  expect(commands.length).toBeLessThanOrEqual(1_000)
  const text = commands.flatMap(effectsOf).reduce((length, effect) => length + effect.length, 0)
  if (commands.length > 1) expect(text).toBeLessThanOrEqual(4 * 1024 * 1024)
}

/** Everything that a command changes and others may name. */
export function keysOf(command: Command): readonly string[] {
  switch (command.type) {
    case 'enqueue':
      return [...new Set(command.runs.flatMap(keysOfRun))]
    case 'checkpoint':
    case 'settle':
      return [...new Set([`run ${command.runId}`, ...command.entries.flatMap(keysOfEffects)])]
    case 'perform':
      return command.action.type === 'start'
        ? [...new Set([`run ${command.runId}`, ...keysOfRun(command.action.run)])]
        : [`run ${command.runId}`, `signal ${command.action.key}`]
    case 'wait':
      return [`run ${command.runId}`, `signal ${command.key}`]
    case 'signal':
      return [`signal ${command.key}`]
    case 'kv':
      return [`kv ${command.change.key}`]
    default:
      return [`run ${command.runId}`]
  }
}

function keysOfRun({ id, queue, dedup, kv }: NewRun): readonly string[] {
  const slot = dedup === null ? [] : [`dedup ${JSON.stringify([queue, dedup.id])}`]
  return [`run ${id}`, ...slot, ...kv.map(({ key }) => `kv ${key}`)]
}

function keysOfEffects({ effects = [] }: NewCheckpoint): readonly string[] {
  return effects.flatMap((effect) => {
    if (effect.type === 'start') return keysOfRun(effect.run)
    return effect.type === 'signal' ? [`signal ${effect.key}`] : [`kv ${effect.key}`]
  })
}

export function effectsOf(command: Command): readonly string[] {
  switch (command.type) {
    case 'enqueue':
      return command.runs.flatMap((run) => [run.input, ...run.kv.map(({ value }) => value)])
    case 'checkpoint':
    case 'wait':
      return command.entries.flatMap(textsOf)
    case 'settle':
      return [
        ...command.entries.flatMap(textsOf),
        command.settlement.type === 'succeed' ? command.settlement.output : command.settlement.type,
      ]
    case 'perform':
      return [command.action.type === 'start' ? command.action.run.input : command.action.payload]
    case 'expire':
      return [`expire ${command.runId} ${command.token} ${command.position}`]
    default:
      return [command.commandId]
  }
}

function textsOf({ value, effects = [] }: NewCheckpoint): readonly string[] {
  const staged = effects.map((effect) => {
    if (effect.type === 'start') return effect.run.input
    return effect.type === 'signal' ? effect.payload : effect.type === 'put' ? effect.value : `delete ${effect.key}`
  })
  return [value ?? '', ...staged]
}

const APPLIED = { type: 'applied', cancelRequested: false, dueAt: null, rippled: false, refusals: [] } as const

/** An outcome that only the command's own caller can take for its own. */
function outcomeOf(command: Command): Outcome {
  switch (command.type) {
    case 'enqueue': {
      const rest = { created: true, status: 'ENQUEUED', caveat: null } as const
      return { type: 'accepted', runs: command.runs.map(({ id }) => ({ id, ...rest })) }
    }
    case 'checkpoint':
      return { ...APPLIED, status: 'PENDING', ending: null }
    case 'settle': {
      const output = command.settlement.type === 'succeed' ? command.settlement.output : ''
      return { ...APPLIED, status: 'SUCCESS', ending: { status: 'SUCCESS', output } }
    }
    case 'perform':
      return { type: 'performed', value: effectsOf(command)[0] ?? '', cancelRequested: false }
    case 'wait':
      return { type: 'signalled', payload: effectsOf(command)[0] ?? '' }
    case 'expire':
      return { type: 'expired' }
    case 'cancel':
      return { type: 'requested', owner: command.commandId, token: null }
    case 'requeue':
      return { type: 'notRequeued', status: null, holder: null }
    case 'signal':
      return { type: 'delivered', runId: command.commandId, woken: false }
    case 'kv':
      return { type: 'kv', applied: true }
  }
}
