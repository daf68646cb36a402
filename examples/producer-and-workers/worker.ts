/** A worker: takes what its queues have, until it is told to stop. Start as many as you like. */
import { Engine } from 'perdure'
import { sqlite } from 'perdure/sqlite'
import { definitions, queues } from './definitions.ts'

const engine = new Engine({ store: sqlite('photos.db'), queues, definitions })
process.once('SIGTERM', () => void engine.shutdown({ timeout: '5s' }))
await engine.launch()
