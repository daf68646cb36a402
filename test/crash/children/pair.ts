/** Starts runs at once, from many callers, and works until it is told to leave. */
import { createInterface } from 'node:readline'
import { Engine } from '../../../src/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { Journal } from '../journal.ts'
import { itemWorkflow } from '../pair.ts'
import { quiet } from '../quiet.ts'

const CALLERS = 50

const [path = '', log = '', name = '', count = ''] = process.argv.slice(2)
const journal = new Journal(log)
const item = itemWorkflow(journal)
const engine = new Engine({ store: sqlite(path), definitions: [item], executorId: name, logger: quiet })
let left = Number(count)

async function call(): Promise<void> {
  while (left > 0) {
    const n = left--
    const run = await engine.start(item, n, { id: `${name}-${n}` })
    journal.note('accepted', run.id)
    process.stdout.write('accepted\n')
    await run.result()
    // Again and again, whoever is thought dead loses what it has in hand.
    if (n % 10 === 0) await engine.recover()
  }
}

const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
process.stdout.write('loaded\n')
await orders.next()
await engine.launch()
await Promise.all(Array.from({ length: CALLERS }, call))
process.stdout.write('done\n')
await orders.next()
await engine.shutdown()
process.stdin.destroy()
