/**
 * Undoing: an order of a trip whose last part fails, so that the earlier parts are cancelled, in reverse.
 *
 * Compensation is ordinary code. It is durable as all code of a body: killed in the middle of it, the run goes on with
 * what is left to undo.
 */
import { Engine, RunFailedError, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

const booked = new Set<string>()

async function book(what: string): Promise<string> {
  if (what === 'car') throw new Error('no car is left')
  booked.add(what)
  console.log(`booked    ${what}`)
  return what
}

async function cancel(what: string): Promise<void> {
  booked.delete(what)
  console.log(`cancelled ${what}`)
}

const trip = workflow('trip', async (ctx, parts: readonly string[]) => {
  const done: string[] = []
  try {
    for (const part of parts) done.push(await ctx.step(`book ${part}`, () => book(part)))
    return done
  } catch (error) {
    for (const part of done.reverse()) await ctx.step(`cancel ${part}`, { maxAttempts: 10 }, () => cancel(part))
    throw error
  }
})

const engine = new Engine({ store: sqlite('trips.db'), definitions: [trip] })
await engine.launch()
const run = await engine.start(trip, ['flight', 'hotel', 'car'])
try {
  await run.result()
} catch (error) {
  if (!RunFailedError.is(error)) throw error
  console.log(`the trip is off: ${error.reason}; still booked: ${booked.size}`)
}
await engine.shutdown()
