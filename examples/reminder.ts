/**
 * A reminder that is repeated until somebody has paid. It sleeps in the database: between two reminders the run holds no
 * memory, and restarts don't disturb it. (Here the sleeps are seconds; a real one would sleep for days.)
 */
import { Engine, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

let paid = false

const remind = workflow('remind', async (ctx, invoice: string) => {
  for (let reminders = 1; ; reminders += 1) {
    await ctx.sleep('1.1s')
    if (await ctx.step('look for the payment', async () => paid)) return reminders - 1
    await ctx.step('send a reminder', async () => console.log(`invoice ${invoice}: reminder ${reminders}`))
    if (reminders === 3) return reminders
  }
})

const engine = new Engine({ store: sqlite('invoices.db'), definitions: [remind] })
await engine.launch()
const run = await engine.start(remind, '2026-17', { id: 'remind-2026-17' })

setTimeout(() => {
  paid = true
}, 1_700)
console.log(`paid after ${await run.result()} reminder(s)`)
await engine.shutdown()
