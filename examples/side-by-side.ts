/**
 * Many steps side by side in one workflow, a few at a time. Each has a record of its own: killed in the middle, only
 * those that were under way run again.
 */
import { Engine, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

const LANES = 4

let running = 0
let most = 0

async function resize(photo: string): Promise<number> {
  running += 1
  most = Math.max(most, running)
  await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 10))
  running -= 1
  return photo.length
}

const album = workflow('album', async (ctx, photos: readonly string[]) => {
  const waiting = [...photos]
  const sizes = new Map<string, number>()
  async function lane(): Promise<void> {
    for (let photo = waiting.shift(); photo !== undefined; photo = waiting.shift()) {
      const next = photo
      sizes.set(next, await ctx.step('resize', { maxAttempts: 3 }, () => resize(next)))
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return sizes
})

const engine = new Engine({ store: sqlite('albums.db'), definitions: [album] })
await engine.launch()
const photos = Array.from({ length: 24 }, (_, index) => `photo-${index + 1}.jpg`)
const run = await engine.start(album, photos)
const sizes = await run.result()
console.log(`${sizes.size} photos resized, at most ${most} at a time`)
await engine.shutdown()
