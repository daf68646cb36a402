/**
 * A process that works on orders until all have ended. It is written as if nothing could happen to it: a worker that
 * comes after one that was killed is this same program, started again.
 *
 * Arguments: the store's file, the address of the world outside, the worker's name, how many orders.
 */
import { Engine } from 'perdure'
import { sqlite } from 'perdure/sqlite'
import { type Order, order } from './order.ts'
import { shopAt } from './outside.ts'
import type { Report } from './process.ts'

const [file = '', url = '', name = '', count = '1'] = process.argv.slice(2)
const orders = Array.from({ length: Number(count) }, (_, index) => ({
  input: { item: 'desk lamp', total: 49 + index } satisfies Order,
  // Starting an order again gives the run that exists.
  options: { id: `order-${index + 1}` },
}))

const engine = new Engine({
  store: sqlite(file),
  definitions: [order],
  state: { shop: shopAt(url, name) },
  executorId: name,
  maxConcurrent: 20,
  // Silent about the takeover, which the timeline tells of.
  logger: { debug: () => {}, info: () => {}, warn: () => {}, error: console.error },
})

/** For the timeline only: what the store knew before this process began to work. */
async function reportFound(): Promise<void> {
  const { runs } = await engine.runs.list({ limit: 1_000 })
  const recorded: string[] = []
  for (const { id } of runs) {
    for (const { position } of await engine.runs.steps(id)) recorded.push(`${id}:${position}`)
  }
  report({ type: 'found', recorded })
}

function report(message: Report): void {
  process.send?.(message)
}

// The demo itself was stopped. Listening for that alone must not keep this process alive.
process.once('disconnect', () => process.exit(1))
process.channel?.unref()
await reportFound()
await engine.launch()
report({ type: 'launched' })

const runs = await engine.startMany(order, orders)
const ended = await Promise.all(
  runs.map(async (run) => ({
    id: run.id,
    receipt: (await run.result()).receipt,
    attempts: (await engine.runs.attempts(run.id)).map(({ attempt, outcome, executor = '' }) => ({
      attempt,
      outcome,
      worker: executor.split(':')[0] ?? '',
    })),
  })),
)
report({ type: 'ended', orders: ended })
await engine.shutdown()
