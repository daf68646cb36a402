/** The queues of the demo, and what runs on them. */
import { define, queue } from 'perdure'
import type { Studio } from './studio.ts'

export const CALLS = { limit: 5, periodMs: 500 }

const app = define<{ readonly studio: Studio }>()

export const definitions = [
  app.workflow('convert', async (ctx, file: string) => ctx.step('convert', () => ctx.state.studio.convert(file))),
  app.workflow('publish', async (ctx, file: string) => ctx.step('publish', () => ctx.state.studio.publish(file))),
]

export const queues = [
  // In each process that takes runs from it.
  queue('media', { workerConcurrency: 2 }),
  // In all processes together.
  queue('publisher', { rateLimiter: { limit: CALLS.limit, period: CALLS.periodMs } }),
]
