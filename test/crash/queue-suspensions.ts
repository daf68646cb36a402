/** Workflows that are suspended until a signal comes or their children have ended, one engine to a file. */
import { setTimeout } from 'node:timers/promises'
import { Engine, queue, workflow } from '../../src/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import type { Journal } from './journal.ts'
import { type Passing, type Point, passingPoints } from './queue-halting.ts'
import { quiet } from './quiet.ts'

export const RUN_ID = 'run-1'
export const KEY = 'approval'
export const CHILDREN = 3

export type Subject = 'waiter' | 'timed' | 'parent'

export function suspensions(journal: Journal) {
  const waiter = workflow('waiter', async (ctx) => {
    await ctx.step('before', ({ idempotencyKey }) => journal.note('effect', idempotencyKey))
    const signal = await ctx.waitForSignal<string>(KEY)
    await ctx.step('after', ({ idempotencyKey }) => journal.note('effect', idempotencyKey))
    return signal.ok ? signal.payload : undefined
  })

  const timed = workflow('timed', async (ctx) => ctx.waitForSignal<string>(KEY, { timeout: '2s' }))

  const child = workflow('child', async (ctx, n: number) =>
    ctx.step('work', async ({ idempotencyKey }) => {
      // The last ends so late that its parent has been suspended.
      if (n === CHILDREN - 1) await setTimeout(700)
      journal.note('effect', idempotencyKey)
      return 10 * n
    }),
  )

  const parent = workflow('parent', async (ctx) => {
    const options = { queue: 'children' }
    const started = await Promise.all(Array.from({ length: CHILDREN }, (_, n) => ctx.start(child, n, options)))
    const results = await Promise.all(started.map((each) => each.result()))
    await ctx.step('after', ({ idempotencyKey }) => journal.note('effect', idempotencyKey))
    return results
  })

  return { waiter, timed, child, parent }
}

export type QueueName = 'family' | 'children'

export interface EngineSettings {
  /** Told of what is written for the run itself, not for its children. */
  readonly passing?: Passing
  /** Which queues it serves; both if unset. */
  readonly serves?: readonly QueueName[]
}

/** What a process is told of one of the files that it works on. */
export interface SuspensionScene {
  readonly store: string
  readonly log: string
  readonly haltAt: Point
  readonly serves?: readonly QueueName[]
}

export function engineOn(path: string, journal: Journal, { passing, serves }: EngineSettings = {}): Engine {
  const store = sqlite(path)
  return new Engine({
    store: passing === undefined ? store : passingPoints(store, passing, RUN_ID),
    definitions: Object.values(suspensions(journal)),
    queues: [queue('family'), queue('children')],
    ...(serves === undefined ? {} : { listenQueues: serves }),
    logger: quiet,
  })
}
