/**
 * A report of many parts, each a run of its own on a queue with a limit: any process may do some of them. The parent
 * holds nothing while it waits. A part that fails fails alone, and the parent decides what that means.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Engine, queue, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

let running = 0
let most = 0

const region = workflow('region', { queue: 'regions' }, async (ctx, name: string) =>
  ctx.step('count', async () => {
    running += 1
    most = Math.max(most, running)
    await pause(15)
    running -= 1
    if (name === 'atlantis') throw new Error('not found on any map')
    return name.length * 100
  }),
)

const report = workflow('report', async (ctx, names: readonly string[]) => {
  const parts = await Promise.all(names.map((name) => ctx.start(region, name)))
  const results = await Promise.allSettled(parts.map((part) => part.result()))
  const sums = results.map((result) => (result.status === 'fulfilled' ? result.value : 0))
  const missing = names.filter((_, index) => results[index]?.status === 'rejected')
  return { total: sums.reduce((sum, part) => sum + part, 0), missing }
})

const engine = new Engine({
  store: sqlite('reports.db'),
  queues: [queue('regions', { globalConcurrency: 3 })],
  definitions: [report, region],
})
await engine.launch()

const names = ['north', 'south', 'east', 'west', 'atlantis', 'centre', 'coast', 'islands']
const run = await engine.start(report, names, { id: 'report-2026' })
const { total, missing } = await run.result()
console.log(`${names.length} regions, at most ${most} at a time: ${total} in all, without ${missing.join(', ')}`)
await engine.shutdown()
