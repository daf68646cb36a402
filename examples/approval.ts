/**
 * A purchase that somebody has to approve, in time. While it waits it is a row in the store: no memory, no slot, and
 * restarts don't matter. (Here the time limit is seconds; a real one would be days.)
 */
import { Engine, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

interface Verdict {
  readonly approved: boolean
  readonly by: string
}

const purchase = workflow('purchase', async (ctx, { id, total }: { id: string; total: number }) => {
  await ctx.step('ask', async () => console.log(`${id}: please approve ${total} EUR`))
  const answer = await ctx.waitForSignal<Verdict>(`verdict ${id}`, { timeout: '1.5s' })
  if (!answer.ok) return ctx.step('give up', async () => `${id}: nobody answered in time`)
  const { approved, by } = answer.payload
  return ctx.step(approved ? 'order' : 'refuse', async () => `${id}: ${approved ? 'ordered' : 'refused'} by ${by}`)
})

const engine = new Engine({ store: sqlite('purchases.db'), definitions: [purchase] })
await engine.launch()
const runs = await engine.startMany(
  purchase,
  [
    { id: 'p1', total: 120 },
    { id: 'p2', total: 9_000 },
    { id: 'p3', total: 75 },
  ].map((input) => ({ input })),
)

// What a page with two buttons would call, from this process or any other.
await engine.sendSignal('verdict p1', { approved: true, by: 'Grace' } satisfies Verdict)
await engine.sendSignal('verdict p2', { approved: false, by: 'Grace' } satisfies Verdict)
for (const run of runs) console.log(await run.result())
await engine.shutdown()
