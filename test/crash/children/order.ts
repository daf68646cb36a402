/** Starts an order, and is killed at the point given. */
import { Engine } from '../../../src/index.ts'
import { Journal } from '../journal.ts'
import { orderWorkflow, passingStore, RUN_ID } from '../order.ts'

const [path = '', log = '', crashAt = ''] = process.argv.slice(2)
const passing = (point: string): void => {
  if (point === crashAt) process.kill(process.pid, 'SIGKILL')
}
const order = orderWorkflow(new Journal(log), passing)
const engine = new Engine({ store: passingStore(path, passing), definitions: [order] })
await engine.launch()
const run = await engine.start(order, 7, { id: RUN_ID })
await run.result()
await engine.shutdown()
