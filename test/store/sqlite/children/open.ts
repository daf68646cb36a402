/** Opens the store at the path given, at the moment given, and enqueues one run. */
import { once } from 'node:events'
import { sqlite } from '../../../../src/store/sqlite/index.ts'
import { enqueue, newRun } from '../requests.ts'

const [path = '', id = ''] = process.argv.slice(2)
process.stdout.write('ready')
await once(process.stdin, 'data')
process.stdin.destroy()
const store = sqlite(path)
await store.open()
await enqueue(store, newRun(id))
await store.close()
