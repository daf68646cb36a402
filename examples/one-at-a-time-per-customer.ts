/**
 * Changes of one customer are applied in order and never side by side, in whatever process; those of different customers
 * are. A busy customer keeps nobody else waiting.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Engine, queue, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

interface Change {
  readonly customer: string
  readonly number: number
}

const busy = new Set<string>()
const done: string[] = []
let mostBusy = 0

const apply = workflow('apply', async (ctx, { customer, number }: Change) =>
  ctx.step('apply', async () => {
    if (busy.has(customer)) throw new Error(`two changes of ${customer} at once`)
    busy.add(customer)
    mostBusy = Math.max(mostBusy, busy.size)
    await pause(10)
    busy.delete(customer)
    done.push(`${customer}${number}`)
  }),
)

const engine = new Engine({
  store: sqlite('customers.db'),
  queues: [queue('changes', { partitioned: true, globalConcurrency: 1 })],
  definitions: [apply],
})

// acme hands in twenty changes before anybody else comes.
const changes: Change[] = [
  ...Array.from({ length: 20 }, (_, index) => ({ customer: 'acme', number: index + 1 })),
  ...['bolt', 'crux', 'dune'].flatMap((customer) => [1, 2, 3].map((number) => ({ customer, number }))),
]
const runs = await engine.startMany(
  apply,
  changes.map((change) => ({ input: change, options: { queue: 'changes', partitionKey: change.customer } })),
)
await engine.launch()
await Promise.all(runs.map((run) => run.result()))

const others = done.findLastIndex((change) => !change.startsWith('acme'))
console.log(`${done.length} changes, ${mostBusy} customers at a time, never two changes of one`)
console.log(`of acme in order: ${done.filter((change) => change.startsWith('acme')).join(' ')}`)
console.log(`the others were done after ${others + 1} of ${done.length}`)
await engine.shutdown()
