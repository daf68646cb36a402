/**
 * Calls of a service that allows so many a second. The limit is kept in the store: it holds for all processes that serve
 * the queue, and across restarts. Here ten calls in any window of half a second.
 */
import { Engine, queue, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

const LIMIT = 10
const PERIOD_MS = 500

const lookUp = workflow('look up', { queue: 'geocoder' }, async (ctx, address: string) =>
  // One call a run: the limit counts starts of runs. A failed call is not repeated in here, where nobody would count it.
  ctx.step('call', async () => address.length),
)

const engine = new Engine({
  store: sqlite('lookups.db'),
  queues: [queue('geocoder', { rateLimiter: { limit: LIMIT, period: PERIOD_MS } })],
  definitions: [lookUp],
})
await engine.launch()

const addresses = Array.from({ length: 35 }, (_, index) => `${index + 1} Main Street`)
const runs = await engine.startMany(
  lookUp,
  addresses.map((address) => ({ input: address })),
)
await Promise.all(runs.map((run) => run.result()))

const { runs: stored } = await engine.runs.list({ definition: 'look up' })
const starts = stored.map(({ startedAt }) => startedAt?.getTime() ?? 0).sort((a, b) => a - b)
const [first = 0] = starts
const last = starts.at(-1) ?? 0
for (let from = first; from <= last; from += PERIOD_MS) {
  const within = starts.filter((at) => at >= from && at < from + PERIOD_MS)
  console.log(`${String(from - first).padStart(4)} ms  ${'▪'.repeat(within.length)}`)
}
await engine.shutdown()
