/** Works while its store is unavailable, loses answers, or is gone for good; any rejection left unhandled is fatal. */
import { Engine, workflow } from '../../../../src/index.ts'
import { silent } from '../../../../src/observe/log.ts'
import { memory } from '../../../../src/store/memory/index.ts'
import { sqlite } from '../../../../src/store/sqlite/index.ts'
import { TroubleStore } from '../trouble-store.ts'

const [kind, path = ''] = process.argv.slice(2)
const data = kind === 'sqlite' ? sqlite(path) : memory()
let steps = 0
const work = workflow('work', async (ctx) => {
  for (const name of ['a', 'b', 'c']) {
    await ctx.step(name, () => {
      steps += 1
    })
  }
})
const store = new TroubleStore(data)
const engine = new Engine({ store, definitions: [work], logger: silent })
await engine.launch()
store.fate = (method) => {
  const calls = store.calls(method)
  return calls % 4 === 0 ? 'lost' : calls % 2 === 0 ? 'answered' : 'unavailable'
}
const runs = await Promise.all(Array.from({ length: 40 }, () => engine.start(work)))
await Promise.all(runs.map((run) => run.result()))
process.stdout.write(`${runs.length} runs, ${steps} steps, `)
// Gone for good, with work in hand, results awaited, and calls under way that nobody looks at but their caller.
const last = await engine.start(work)
store.die()
const left = [last.result(), engine.start(work), engine.runs.list(), engine.cancel('x'), last.cancel()]
const settled = Promise.allSettled(left)
await engine.shutdown({ timeout: 10 })
await settled
process.stdout.write('down')
