/** The queues of the fleet, and what runs on them. All processes have them from here. */
import { define, queue } from 'perdure'
import type { Outside } from './outside.ts'

export const PAGES_AT_A_TIME = 3
export const CALLS = { limit: 10, periodMs: 1_000 }

const app = define<{ readonly outside: Outside }>()

export const definitions = [
  app.workflow('render', async (ctx, _page: number) =>
    ctx.step('render', () => ctx.state.outside.work({ queue: 'render', run: ctx.runId, key: '', ms: 200 })),
  ),
  app.workflow('call', async (ctx, _n: number) =>
    ctx.step('call', () => ctx.state.outside.work({ queue: 'api', run: ctx.runId, key: '', ms: 20 })),
  ),
  app.workflow('bill', async (ctx, customer: string) =>
    ctx.step('bill', () => ctx.state.outside.work({ queue: 'billing', run: ctx.runId, key: customer, ms: 150 })),
  ),
]

/** Also where nobody can tell that another process is dead, its work goes on soon. The default is 30 s. */
const lease = '5s'

export const queues = [
  queue('render', { globalConcurrency: PAGES_AT_A_TIME, lease }),
  queue('api', { rateLimiter: { limit: CALLS.limit, period: CALLS.periodMs }, lease }),
  // One at a time for each customer.
  queue('billing', { partitioned: true, globalConcurrency: 1, lease }),
]
