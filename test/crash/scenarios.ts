/** The workflows that the scenario worker runs, and the test's own engine with it. */
import { setTimeout } from 'node:timers/promises'
import { type StepArgument, workflow } from '../../src/index.ts'
import type { Journal } from './journal.ts'

export interface Scene {
  readonly journal: Journal
  /** Resolves when whoever directs the scene says so. */
  hold(runId: string): Promise<void>
  /** Milliseconds since this process began to launch its engine, or whatever else the test measures by. */
  elapsed(): number
}

/** Where a run of `shift` stops to be taken over. */
export type HoldAt = 'in the step' | 'in a sleep' | 'before the settlement' | 'nowhere'

const LONG_SLEEP_MS = 1_500

export function scenarios(scene: Scene) {
  return { ...quietScenarios(scene), ...roughScenarios(scene) }
}

function notesOf({ journal, elapsed }: Scene) {
  return {
    enter: (runId: string): void => journal.note('body', runId, String(Math.round(elapsed()))),
    effect: ({ idempotencyKey }: StepArgument): number => {
      journal.note('effect', idempotencyKey)
      return process.pid
    },
  }
}

/** Runs that do no harm to their process. */
function quietScenarios(scene: Scene) {
  const { hold } = scene
  const { enter, effect } = notesOf(scene)

  /** Tells which process recorded each of its steps. */
  const shift = workflow('shift', async (ctx, at: HoldAt) => {
    enter(ctx.runId)
    const first = await ctx.step('first', effect)
    if (at === 'in a sleep') {
      void hold(ctx.runId)
      await ctx.sleep(500)
    }
    const second = await ctx.step('second', async (step) => {
      effect(step)
      if (at === 'in the step') await hold(ctx.runId)
      return process.pid
    })
    if (at === 'before the settlement') await hold(ctx.runId)
    return [first, second]
  })

  const steady = workflow('steady', async (ctx, steps: number) => {
    enter(ctx.runId)
    for (let step = 0; step < steps; step += 1) {
      await ctx.step('go', async (argument) => {
        await setTimeout(20)
        return effect(argument)
      })
    }
    return steps
  })

  const nap = workflow('nap', async (ctx) => {
    enter(ctx.runId)
    await ctx.step('before', effect)
    await ctx.sleep(LONG_SLEEP_MS)
    await ctx.step('after', effect)
  })

  return { shift, steady, nap }
}

/** Runs that block their process, kill it, outstay its end, or fail. */
function roughScenarios(scene: Scene) {
  const { hold } = scene
  const { enter, effect } = notesOf(scene)

  /** Nothing happens in this process while it runs. */
  const blocking = workflow('blocking', async (ctx, blockMs: number) => {
    enter(ctx.runId)
    return ctx.step('block', (step) => {
      effect(step)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs)
      return process.pid
    })
  })

  /** Kills whoever runs it. */
  const poison = workflow('poison', { maxRecoveries: 2 }, async (ctx) => {
    enter(ctx.runId)
    await ctx.step('kill', async () => {
      await setTimeout(50)
      process.kill(process.pid, 'SIGKILL')
      await hold(ctx.runId)
    })
  })

  /** Ends when it is told to stop, which it heeds; `deaf` does not. */
  const stubborn = workflow('stubborn', async (ctx, deaf: boolean) => {
    enter(ctx.runId)
    await ctx.step('before', effect)
    return ctx.step('long', (step) => {
      effect(step)
      const held = hold(ctx.runId)
      if (deaf) return held
      return new Promise<void>((resolve, reject) => {
        void held.then(resolve)
        step.signal.addEventListener('abort', () => reject(step.signal.reason))
      })
    })
  })

  /** Arms timers of several kinds, and fails. */
  const failing = workflow('failing', { timeout: '15m' }, async (ctx) => {
    await ctx.step('fails', { timeout: '15m', maxAttempts: 2, backoff: { base: '5ms' } }, () => {
      throw new Error('no')
    })
  })

  return { blocking, poison, stubborn, failing }
}
