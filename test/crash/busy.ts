/**
 * What a busy worker runs: steps one after the other and side by side, retries, short sleeps, and sleeps long enough
 * to be suspended. Each effect has a value of its own, so that a result tells which of them was recorded.
 */
import { setTimeout } from 'node:timers/promises'
import { type StepArgument, workflow } from '../../src/index.ts'
import type { Command, Store } from '../../src/store/contract.ts'
import type { Journal } from './journal.ts'
import { storeOf } from './store-spec.ts'

/** The steps of a run, by their position. */
export const STEP_POSITIONS = [0, 1, 2, 3, 5] as const
const SLEEPS_MS = [0, 3, 40, 1_100] as const

export function busyWorkflow(journal: Journal) {
  let effects = 0
  const effect = async ({ idempotencyKey }: StepArgument): Promise<string> => {
    await setTimeout(Math.random() * 4)
    const value = `${process.pid}.${++effects}`
    journal.note('effect', idempotencyKey, value)
    process.stdout.write('effect\n')
    await setTimeout(Math.random() * 4)
    return value
  }
  const retries = { maxAttempts: 3, backoff: { base: '1ms' } } as const
  // How often a process may die under a run is the subject of another test.
  return workflow('busy', { maxRecoveries: 1_000 }, async (ctx, n: number) => {
    journal.note('body', ctx.runId)
    const first = await ctx.step('first', effect)
    const flaky = async (): Promise<readonly string[]> => {
      const before = await ctx.step('side', retries, (step) => {
        if (step.attempt <= n % 3) throw new Error('not yet')
        return effect(step)
      })
      return [before, await ctx.step('side', effect)]
    }
    // Positions: the chain's first call comes first, and its second after the other's only one.
    const [[before, after], alone] = await Promise.all([flaky(), ctx.step('alone', effect)])
    await ctx.sleep(SLEEPS_MS[n % SLEEPS_MS.length] ?? 0)
    return [first, before, alone, after, await ctx.step('last', retries, effect)]
  })
}

/** A store that notes what it has acknowledged: outcomes of steps, and settlements. */
export function notingStore(spec: string, journal: Journal): Store {
  const store = storeOf(spec)
  const commit = store.commit.bind(store)
  store.commit = async (commands) => {
    const outcomes = await commit(commands)
    outcomes.forEach(({ type }, index) => {
      const command = commands[index]
      if (type === 'applied' && command !== undefined) note(journal, command)
    })
    return outcomes
  }
  return store
}

function note(journal: Journal, command: Command): void {
  if (command.type !== 'checkpoint' && command.type !== 'settle') return
  const { runId, entries } = command
  for (const { type, verb, position } of entries) {
    if (type === 'outcome' && verb === 'step') journal.note('recorded', `${runId}:${position}`)
  }
  if (command.type === 'settle') journal.note('settled', runId, command.settlement.type)
}
