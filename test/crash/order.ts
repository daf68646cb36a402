/** An order of three steps, with a place to crash at on each side of everything that lasts. */
import { sqlite } from 'perdure/sqlite'
import { workflow } from '../../src/index.ts'
import type { Command, Store } from '../../src/store/contract.ts'
import type { Journal } from './journal.ts'

export const STEPS = ['reserve', 'charge', 'ship'] as const
export const RUN_ID = 'order-1'

/** Told of every point that is passed; one of them it may not survive. */
export type Passing = (point: string) => void

export function orderWorkflow(journal: Journal, passing: Passing) {
  return workflow('order', async (ctx, amount: number): Promise<readonly string[]> => {
    journal.note('body', ctx.runId)
    passing('before the first step')
    const receipts: string[] = []
    for (const name of STEPS) {
      const receipt = await ctx.step(name, async ({ idempotencyKey }) => {
        passing(`before the effect of ${name}`)
        journal.note('effect', name, idempotencyKey)
        passing(`after the effect of ${name}`)
        return `${name} ${amount}`
      })
      receipts.push(receipt)
    }
    return receipts
  })
}

/** A store that passes a point before and after each commit. */
export function passingStore(path: string, passing: Passing): Store {
  const store = sqlite(path)
  const commit = store.commit.bind(store)
  store.commit = async (commands) => {
    const points = commands.map(pointOf)
    for (const point of points) passing(`before ${point}`)
    const outcomes = await commit(commands)
    for (const point of points) passing(`after ${point}`)
    return outcomes
  }
  return store
}

function pointOf(command: Command): string {
  if (command.type === 'enqueue') return 'the acceptance'
  if (command.type === 'settle') return 'the settlement'
  return command.type === 'checkpoint' ? `the checkpoint of ${command.entries[0]?.name}` : command.type
}
