/** Whatever callers submit and whatever the store does, short of never answering: nothing lost, doubled or swapped. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { realRandom } from '../../src/core/random.ts'
import { Committer } from '../../src/runtime/committer/committer.ts'
import type { Command, NewRun, Outcome } from '../../src/store/contract.ts'
import { cancel, checkpoint, enqueue, expire, kv, newRun, perform, put, settle, signal, wait } from './commands.ts'
import { FastScheduler, turns } from './fast-scheduler.ts'
import { type Act, effectsOf, keysOf, REFUSED, ScriptedStore } from './scripted-store.ts'

const KINDS = [
  ...(['settle', 'cancel', 'enqueue', 'deduplicated', 'effects'] as const),
  ...(['perform', 'send', 'wait', 'expire', 'signal', 'kv'] as const),
] as const

const ACTS = ['ok', 'ok', 'prefix', 'unavailable', 'lost', 'blocked', 'blockedInVain'] as const

interface Op {
  readonly kind: 'checkpoint' | (typeof KINDS)[number]
  readonly run: number
  readonly refused: boolean
  readonly padding: number
}
interface Wave {
  readonly ops: readonly Op[]
  readonly thenTurns: number
}

const RUNS = 4
const op: fc.Arbitrary<Op> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('checkpoint' as const) },
    { weight: 5, arbitrary: fc.constantFrom(...KINDS) },
  ),
  run: fc.nat(RUNS - 1),
  refused: fc.oneof({ weight: 12, arbitrary: fc.constant(false) }, fc.constant(true)),
  padding: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, fc.constantFrom(1_500_000, 4_500_000)),
})
const waves: fc.Arbitrary<readonly Wave[]> = fc.array(
  fc.record({ ops: fc.array(op, { maxLength: 12 }), thenTurns: fc.nat(4) }),
  { maxLength: 8 },
)
const script: fc.Arbitrary<readonly Act[]> = fc.array(
  fc.record({ delayTurns: fc.nat(3), kind: fc.constantFrom(...ACTS) }),
  { maxLength: 20 },
)

interface Submitted {
  readonly command: Command
  readonly text: string
  answers: number
  outcome?: Outcome
  error?: unknown
}

/** Callers as the library has them: a run has one live token at a time, and a new one after a refusal or an end. */
class Callers {
  readonly all: Submitted[] = []
  readonly #tokens = Array.from({ length: RUNS }, () => ({ generation: 0, seq: 0 }))
  readonly #committer: Committer

  constructor(committer: Committer) {
    this.#committer = committer
  }

  submit(given: Op): void {
    const text = `#${this.all.length}${given.refused ? REFUSED : ''}${'x'.repeat(given.padding)}`
    const command = this.#command(given, text)
    const submitted: Submitted = { command, text, answers: 0 }
    this.all.push(submitted)
    this.#committer.submit(command).then(
      (outcome) => {
        submitted.answers += 1
        submitted.outcome = outcome
      },
      (error: unknown) => {
        submitted.answers += 1
        submitted.error = error
        if ('token' in command && command.token === this.#token(given.run)) this.#renewToken(given.run)
      },
    )
  }

  #command(given: Op, text: string): Command {
    const { kind, run } = given
    const id = `run-${run}`
    const next = `run-${(run + 1) % RUNS}`
    const key = `key-${run % 2}`
    switch (kind) {
      case 'cancel':
        return cancel(id, text)
      case 'enqueue':
        return enqueue([id, next, id], text)
      case 'deduplicated':
        return { type: 'enqueue', commandId: text, runs: [this.#deduplicated(`${text}-run`, key, text)] }
      case 'signal':
        return signal(key, text)
      case 'kv':
        return kv(key, text)
      default:
        return this.#fenced(given, { id, next, key }, text)
    }
  }

  #fenced(
    { kind, run }: Op,
    { id, next, key }: { readonly id: string; readonly next: string; readonly key: string },
    text: string,
  ): Command {
    const token = this.#token(run)
    if (kind === 'settle') this.#renewToken(run)
    switch (kind) {
      case 'settle':
        return settle(id, token, text)
      case 'effects':
        return checkpoint(id, token, this.#live(run).seq++, text, [
          put(key, `${text}/put`),
          { type: 'start', run: newRun(next, `${text}/start`) },
        ])
      case 'perform':
        return perform(id, token, this.#live(run).seq++, { type: 'start', run: this.#deduplicated(next, key, text) })
      case 'send':
        return perform(id, token, this.#live(run).seq++, { type: 'signal', key, payload: text })
      case 'wait':
        return wait(id, token, this.#live(run).seq++, key, text)
      case 'expire':
        // A position that no other has, so that its effect is known.
        return expire(id, token, this.all.length)
      default:
        return checkpoint(id, token, this.#live(run).seq++, text)
    }
  }

  #deduplicated(id: string, key: string, text: string): NewRun {
    return newRun(id, text, { queue: 'q', dedup: { id: key, policy: 'reject' }, kv: [put(key, `${text}/kv`)] })
  }

  #live(run: number): { generation: number; seq: number } {
    const live = this.#tokens[run]
    if (live === undefined) throw new Error('no such run')
    return live
  }

  #token(run: number): string {
    const { generation } = this.#live(run)
    return `${run}-${generation}${generation % 5 === 4 ? '-lost' : ''}`
  }

  #renewToken(run: number): void {
    this.#tokens[run] = { generation: this.#live(run).generation + 1, seq: 0 }
  }
}

async function check(given: readonly Wave[], acts: readonly Act[]): Promise<void> {
  const store = new ScriptedStore(acts)
  const committer = new Committer({ store, scheduler: new FastScheduler(), random: realRandom, onTrouble: () => {} })
  const callers = new Callers(committer)
  for (const wave of given) {
    for (const each of wave.ops) callers.submit(each)
    await turns(wave.thenTurns)
  }
  await committer.idle()
  await turns(1)
  for (const each of callers.all) checkAnswer(each, store)
  expect(store.applied.length, 'nothing applied that nobody asked for').toBe(new Set(store.applied).size)
  checkOrder(callers.all, store)
  checkChains(callers.all)
}

function checkAnswer({ answers, command, text, outcome, error }: Submitted, store: ScriptedStore): void {
  expect(answers, `one answer to ${command.type} ${text.slice(0, 9)}`).toBe(1)
  if (error !== undefined) {
    expect(String(error)).toMatch(/refused #\d+!/)
    expect(String(error)).not.toContain('somewhere')
    expect(store.applied.some((effect) => effectsOf(command).includes(effect))).toBe(false)
    return
  }
  if (command.type !== 'expire') expect(text).not.toContain(REFUSED)
  const lost = 'token' in command && command.token.endsWith('-lost')
  for (const effect of effectsOf(command)) expect(store.applied.includes(effect)).toBe(!lost)
  if (lost) expect(outcome).toEqual({ type: 'claimLost' })
  else if (command.type === 'checkpoint')
    expect(outcome).toMatchObject({ type: 'applied', status: 'PENDING', ending: null })
  else if (command.type === 'settle') expect(outcome).toMatchObject({ ending: { output: text } })
  else if (command.type === 'cancel') expect(outcome).toMatchObject({ owner: text })
  else if (command.type === 'enqueue') expect(outcome).toMatchObject({ runs: command.runs.map(({ id }) => ({ id })) })
  else if (command.type === 'perform') expect(outcome).toMatchObject({ value: text })
  else if (command.type === 'wait') expect(outcome).toMatchObject({ payload: text })
  else if (command.type === 'signal') expect(outcome).toMatchObject({ runId: text })
}

/** What was given for a run, or for anything else that has a key, is applied in the order given. */
function checkOrder(all: readonly Submitted[], store: ScriptedStore): void {
  const keys = new Set(all.flatMap(({ command }) => keysOf(command)))
  for (const key of keys) {
    const own = all.filter(({ command }) => keysOf(command).includes(key))
    const places = own.flatMap(({ command }) => effectsOf(command)).map((effect) => store.applied.indexOf(effect))
    const applied = places.filter((place) => place >= 0)
    expect(applied).toEqual([...applied].sort((a, b) => a - b))
  }
}

/** A history has no gaps: under one token, nothing is applied behind what was refused. */
function checkChains(all: readonly Submitted[]): void {
  const broken = new Set<string>()
  for (const { command, error } of all) {
    if (!('token' in command)) continue
    if (error !== undefined) broken.add(command.token)
    else expect(broken, 'applied behind a refused command').not.toContain(command.token)
  }
}

describe('the committer, whatever happens', () => {
  const property = fc.asyncProperty(waves, script, check)

  test('fixed seeds', async () => {
    for (const seed of [1, 42, 2026]) await fc.assert(property, { seed, numRuns: 60 })
  })

  test('a random seed', async () => {
    await fc.assert(property, { numRuns: 10_000, interruptAfterTimeLimit: 4_000 })
  })
})
