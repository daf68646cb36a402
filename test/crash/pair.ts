/** Short runs that note who works on them, from the first line to the last. */
import { setTimeout } from 'node:timers/promises'
import { workflow } from '../../src/index.ts'
import type { Journal } from './journal.ts'

export function itemWorkflow(journal: Journal) {
  return workflow('item', async (ctx, n: number) => {
    journal.note('body', ctx.runId)
    for (const name of ['first', 'second']) {
      await ctx.step(name, async ({ idempotencyKey }) => {
        await setTimeout(Math.random() * 5)
        journal.note('effect', idempotencyKey)
      })
    }
    journal.note('end', ctx.runId)
    return n
  })
}
