/** Starts runs that nobody runs, awaits one of them, closes the client, and has nothing left to do. */
import { Client } from '../../../../src/index.ts'
import { silent } from '../../../../src/observe/log.ts'
import { memory } from '../../../../src/store/memory/index.ts'
import { sqlite } from '../../../../src/store/sqlite/index.ts'

const [kind, path = ''] = process.argv.slice(2)
const client = new Client({ store: kind === 'sqlite' ? sqlite(path) : memory(), logger: silent })
const run = await client.start('convert', 'intro', { queue: 'media' })
await client.startMany('convert', [{ input: 'a' }, { input: 'b' }])
run.result({ timeout: '1h' }).catch(() => {})
run.result().catch(() => {})
await client.close()
process.stdout.write('closed')
