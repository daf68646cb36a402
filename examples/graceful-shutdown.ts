/**
 * A server that is told to stop while it works: SIGTERM, a drain with a bound, and the work that was not done in time
 * handed back. The next process (here: a second engine) goes on with it at once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Engine, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

const report = workflow('report', async (ctx, pages: number) => {
  for (let page = 1; page <= pages; page += 1) {
    await ctx.step('write page', async (step) => {
      // Heeding the signal is what makes a step leave in time.
      await pause(60, undefined, { signal: step.signal })
      console.log(`page ${page}`)
    })
  }
  return `${pages} pages`
})

const logger = { debug() {}, info() {}, warn() {}, error: console.error }
const engine = new Engine({ store: sqlite('reports.db'), definitions: [report], logger })
await engine.launch()
await engine.start(report, 6, { id: 'annual-report' })

const stopped = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => {
    console.log('SIGTERM: handing back what is not done in 100 ms')
    void engine.shutdown({ timeout: 100 }).then(resolve)
  })
})
setTimeout(() => process.kill(process.pid, 'SIGTERM'), 150)
await stopped

const next = new Engine({ store: sqlite('reports.db'), definitions: [report], logger })
await next.launch()
console.log(`the next process: ${await next.handle(report, 'annual-report').result()}`)
console.log((await next.runs.attempts('annual-report')).map(({ outcome }) => outcome).join(', then '))
await next.shutdown()
