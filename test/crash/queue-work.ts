/** What workers take from queues: runs that note when they begin and end, by a clock that all processes share. */
import { setTimeout } from 'node:timers/promises'
import { workflow } from '../../src/index.ts'
import type { Journal } from './journal.ts'

export interface Task {
  /** How long it works. */
  readonly ms: number
  /** Where it waits until it is released, in a process that holds runs: in its second step, or before it is settled. */
  readonly hold?: 'in a step' | 'at the end'
  /** How long it sleeps before it does anything: long enough, and it is suspended. */
  readonly sleepMs?: number
}

export interface TaskScene {
  readonly journal: Journal
  /** Told of each beginning. */
  begun(runId: string): void
  hold(runId: string): Promise<void>
}

/** Milliseconds since the epoch, by a clock that is never set back: comparable between processes, and with the store's. */
export function instant(): number {
  return performance.timeOrigin + performance.now()
}

/**
 * Notes `begin` first and `end` last, so both lie between the claim of the run and its settlement: runs that overlap in
 * the journal were claimed at the same time, but runs may be claimed at the same time without it.
 */
export function taskWorkflow({ journal, begun, hold }: TaskScene) {
  // How often a process may die under a run is the subject of another test.
  return workflow('task', { maxRecoveries: 1_000 }, async (ctx, task: Task) => {
    journal.note('begin', ctx.runId, String(instant()))
    begun(ctx.runId)
    if (task.sleepMs !== undefined) await ctx.sleep(task.sleepMs)
    for (const name of ['first', 'second']) {
      await ctx.step(name, async ({ idempotencyKey }) => {
        if (task.ms > 0) await setTimeout(task.ms / 2)
        if (task.hold === 'in a step' && name === 'second') await hold(ctx.runId)
        journal.note('effect', idempotencyKey)
      })
    }
    if (task.hold === 'at the end') await hold(ctx.runId)
    journal.note('end', ctx.runId, String(instant()))
    return process.pid
  })
}

/** The id of a run says its lane: all before the last dot. */
export function laneOf(runId: string): string {
  return runId.slice(0, runId.lastIndexOf('.'))
}
