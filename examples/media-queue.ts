/**
 * A queue for heavy work: videos are accepted as fast as they come, and converted two at a time. Each conversion is a run
 * with a history of its own: killed in the middle, it goes on with the part that it had come to.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Engine, queue, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

let running = 0
let most = 0

async function transcode(file: string, part: number): Promise<string> {
  running += 1
  most = Math.max(most, running)
  await pause(20 + Math.random() * 20)
  running -= 1
  return `${file}.${part}.mp4`
}

const convert = workflow('convert', { queue: 'media' }, async (ctx, file: string) => {
  const parts: string[] = []
  for (const part of [1, 2, 3]) {
    parts.push(await ctx.step(`part ${part}`, { maxAttempts: 3 }, () => transcode(file, part)))
  }
  return ctx.step('join', async () => `${file}.mp4, of ${parts.length} parts`)
})

const engine = new Engine({
  store: sqlite('media.db'),
  queues: [queue('media', { workerConcurrency: 2 })],
  definitions: [convert],
})
await engine.launch()

const files = ['intro', 'demo', 'outro', 'credits', 'trailer']
const runs = await engine.startMany(
  convert,
  files.map((file) => ({ input: file, options: { id: `convert-${file}` } })),
)
console.log(`${runs.length} accepted`)
for (const run of runs) console.log(await run.result())
console.log(`at most ${most} at a time`)
await engine.shutdown()
