/**
 * A welcome mail, however often it is asked for: while one is on its way, a second request gets that one, or is told so.
 * Once it is sent the same may be asked for again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Engine, QueueDeduplicatedError, queue, workflow } from 'perdure'
import { sqlite } from 'perdure/sqlite'

let sent = 0

const welcome = workflow('welcome', { queue: 'emails' }, async (ctx, user: number) =>
  ctx.step('send', async () => {
    await pause(30)
    sent += 1
    return `mail ${sent} to user ${user}`
  }),
)

const engine = new Engine({ store: sqlite('emails.db'), queues: [queue('emails')], definitions: [welcome] })
await engine.launch()

const dedupId = 'welcome-user-17'
// Twelve clicks on one button.
const clicks = await Promise.all(
  Array.from({ length: 12 }, () => engine.start(welcome, 17, { dedupId, dedupPolicy: 'returnExisting' })),
)
console.log(`${clicks.length} clicks, ${new Set(clicks.map(({ id }) => id)).size} run`)

try {
  await engine.start(welcome, 17, { dedupId })
} catch (error) {
  if (!QueueDeduplicatedError.is(error)) throw error
  console.log(`refused: ${error.holder === clicks[0]?.id ? 'the first click holds the id' : 'by another'}`)
}

console.log(await clicks[0]?.result())
const later = await engine.start(welcome, 17, { dedupId })
console.log(await later.result())
await engine.shutdown()
