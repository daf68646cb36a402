import { built } from '../built.ts'
import { builtPostgres } from '../postgres-built.ts'

const { Engine, workflow, queue } = await built()
const { postgres } = await builtPostgres()

const stamp = workflow('stamp', async (_ctx, _n: number) => performance.timeOrigin + performance.now())
const engine = new Engine({
  store: postgres(process.argv[2] ?? ''),
  definitions: [stamp],
  queues: [queue('bench')],
})
await engine.launch()
process.once('message', () => void engine.shutdown().then(() => process.disconnect()))
process.send?.('launched')
