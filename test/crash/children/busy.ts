/**
 * A busy worker. Loads, waits for a line, works: `work` starts runs without end, one for each that ends; `finish`
 * starts none, and leaves when every run of the store has ended.
 */
import { once } from 'node:events'
import { Engine } from '../../../src/index.ts'
import { busyWorkflow, notingStore } from '../busy.ts'
import { Journal } from '../journal.ts'
import { quiet } from '../quiet.ts'

const AT_ONCE = 4

const [path = '', log = ''] = process.argv.slice(2)
const journal = new Journal(log)
const busy = busyWorkflow(journal)
const engine = new Engine({ store: notingStore(path, journal), definitions: [busy], maxConcurrent: 16, logger: quiet })
process.stdout.write('loaded\n')
const [word] = await once(process.stdin, 'data')
process.stdin.destroy()
await engine.launch()
process.stdout.write('launched\n')
let started = 0

async function startForever(): Promise<never> {
  for (;;) {
    const n = started++
    const run = await engine.start(busy, n)
    journal.note('accepted', run.id)
    await run.result()
  }
}

if (String(word).trim() === 'work') {
  await Promise.all(Array.from({ length: AT_ONCE }, startForever))
} else {
  for (let cursor: string | undefined, last = false; !last; ) {
    const page = await engine.runs.list(cursor === undefined ? {} : { cursor })
    await Promise.all(page.runs.map(({ id }) => engine.handle(id).result()))
    cursor = page.cursor
    last = cursor === undefined
  }
  await engine.shutdown()
}
