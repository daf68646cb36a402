/** Opens the store at the path given, at the moment given, and enqueues one run. */
import { once } from 'node:events'
import { sqlite } from '../../../../src/store/sqlite/index.ts'

const [path = '', id = ''] = process.argv.slice(2)
process.stdout.write('ready')
await once(process.stdin, 'data')
process.stdin.destroy()
const store = sqlite(path)
await store.open()
const run = { definition: 'convert', kind: 'workflow', queue: null, input: '1', inputHash: 'h' } as const
const runs = [{ ...run, id, maxRecoveries: 50, timeoutMs: null, claim: null }]
await store.commit([{ type: 'enqueue', commandId: id, runs }])
await store.close()
