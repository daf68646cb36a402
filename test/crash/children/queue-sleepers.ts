/**
 * Puts workflows to sleep for a day by a clock of its own, and wakes them. Prints one line of JSON: how much the process
 * grew while they slept (after a warm-up, both times after garbage collection), and how many slept and woke.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Engine, queue, workflow } from '../../../src/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import type { Slept } from '../queue-sleepers.ts'
import { quiet } from '../quiet.ts'

const [path = '', warmUp = '', count = ''] = process.argv.slice(2)
const BATCH = 1_000

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

let woken = 0
const nap = workflow('nap', async (ctx) => {
  await ctx.sleep('1d')
  woken += 1
})
const clock = new MockClock()
const engine = new Engine({
  store: sqlite(path, { clock }),
  definitions: [nap],
  queues: [queue('beds', { maxTasksPerIteration: 1_000 })],
  logger: quiet,
})
await engine.launch()

let asleep = 0
async function putToSleep(some: number): Promise<void> {
  for (let left = some; left > 0; left -= BATCH) {
    const starts = Array.from({ length: Math.min(BATCH, left) }, () => ({
      input: undefined,
      options: { queue: 'beds' },
    }))
    await engine.startMany(nap, starts)
  }
  await clock.advance('1s')
  asleep = (await engine.queues.stats('beds')).waiting
}

async function measure(): Promise<{ readonly heap: number; readonly rss: number }> {
  for (let round = 0; round < 5; round += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
  }
  const { heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed, rss }
}

await putToSleep(Number(warmUp))
const before = await measure()
await putToSleep(Number(count))
const after = await measure()
const sleptAt = performance.now()
await clock.advance('1d')
const slept: Slept = {
  ...{ asleep, woken, heapGrowth: after.heap - before.heap, rssGrowth: after.rss - before.rss },
  wakingMs: performance.now() - sleptAt,
}
process.stdout.write(`slept ${JSON.stringify(slept)}\n`)
await engine.shutdown()
