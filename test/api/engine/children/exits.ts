/** Runs workflows that fail, time out, retry and sleep, shuts the engine down, and has nothing left to do. */
import { Engine, workflow } from '../../../../src/index.ts'
import { silent } from '../../../../src/observe/log.ts'
import { memory } from '../../../../src/store/memory/index.ts'
import { sqlite } from '../../../../src/store/sqlite/index.ts'

const [kind, path = ''] = process.argv.slice(2)
const fails = workflow('fails', { timeout: '15m' }, async (ctx) => {
  await ctx.step('fails', { timeout: '15m', maxAttempts: 2, backoff: { base: 1 } }, () => {
    throw new Error('no')
  })
})
const naps = workflow('naps', { timeout: '2d' }, async (ctx) => ctx.sleep('1d'))
const hangs = workflow('hangs', { timeout: '15m' }, async (ctx) =>
  ctx.step('hangs', { timeout: '15m' }, () => new Promise<void>(() => {})),
)
const retries = workflow('retries', async (ctx) =>
  ctx.step('retries', { maxAttempts: 5, backoff: { base: '10m', max: '10m' } }, () => {
    throw new Error('later')
  }),
)
const engine = new Engine({
  store: kind === 'sqlite' ? sqlite(path) : memory(),
  definitions: [fails, naps, hangs, retries],
  logger: silent,
})
await engine.launch()
await (await engine.start(fails)).result().catch(() => {})
const nap = await engine.start(naps)
const hung = await engine.start(hangs)
await engine.start(retries)
for (const run of [nap, hung]) run.result({ timeout: '1h' }).catch(() => {})
while ((await nap.status()) !== 'WAITING') await new Promise(setImmediate)
await engine.shutdown({ timeout: 10 })
process.stdout.write('down')
