/** What the workers can do. The producer imports the type of this, and none of its code. */
import { setTimeout as pause } from 'node:timers/promises'
import { queue, workflow } from 'perdure'

const resize = workflow('resize', { queue: 'photos' }, async (ctx, photo: string) =>
  ctx.step('resize', async () => {
    await pause(25)
    return `${photo}, by process ${process.pid}`
  }),
)

export const definitions = [resize]
export const queues = [queue('photos', { workerConcurrency: 2 })]
