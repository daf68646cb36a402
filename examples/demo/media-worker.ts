/**
 * A process that takes runs from queues until it is told to stop.
 *
 * Arguments: the store's file, the studio's address, the worker's name, the queues that it takes runs from.
 */
import { Engine } from 'perdure'
import { sqlite } from 'perdure/sqlite'
import { definitions, queues } from './media.ts'
import { studioAt } from './studio.ts'

const [file = '', url = '', name = '', ...listenQueues] = process.argv.slice(2)
const engine = new Engine({
  ...{ store: sqlite(file), definitions, queues, listenQueues },
  state: { studio: studioAt(url) },
  executorId: name,
})
process.once('SIGTERM', () => void engine.shutdown())
// The demo itself was stopped. Listening for that alone must not keep this process alive.
process.once('disconnect', () => process.exit(1))
process.channel?.unref()
await engine.launch()
process.send?.('launched')
