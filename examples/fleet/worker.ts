/**
 * A worker of the fleet: takes runs from all queues until it is told to stop. All that it knows of the others is the
 * URL of their database.
 *
 * Arguments: the database's URL, the address of the world outside, the worker's name.
 */
import { Engine } from 'perdure'
import { postgres } from 'perdure/postgres'
import { outsideAt } from './outside.ts'
import { definitions, queues } from './work.ts'

const [database = '', url = '', name = ''] = process.argv.slice(2)
const outside = outsideAt(url, name)
const engine = new Engine({
  ...{ store: postgres(database), definitions, queues },
  state: { outside },
  executorId: name,
  // Silent about the takeover, which the timeline tells of.
  logger: { debug: () => {}, info: () => {}, warn: () => {}, error: console.error },
})
process.once('SIGTERM', () => void engine.shutdown())
// The demo itself was stopped. Listening for that alone must not keep this process alive.
process.once('disconnect', () => process.exit(1))
process.channel?.unref()
await outside.greet()
await engine.launch()
process.send?.('launched')
