import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { Engine, RunFailedError, workflow } from '../../../src/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { freshFile } from './places.ts'

describe('a record that can not be read back', () => {
  test('dead-letters its run at once, which goes on when the record is mended and the run requeued', async () => {
    const path = freshFile()
    const clock = new MockClock()
    let bodies = 0
    const nap = workflow('nap', async (ctx) => {
      const first = await ctx.step('first', async () => ++bodies)
      await ctx.sleep('1h')
      return first
    })
    const engine = new Engine({ store: sqlite(path, { clock }), definitions: [nap] })
    await engine.launch()
    const run = await engine.start(nap)
    await clock.advance('1m')
    expect(await run.status()).toBe('WAITING')
    const database = new Database(path)
    database.prepare("update perdure_checkpoints set value = '{\"' where name = 'first'").run()
    await clock.advance('1h')
    expect(await run.status()).toBe('DEAD')
    expect(await run.result().catch((error: unknown) => error)).toMatchObject({ kind: 'serialization' })
    expect(await run.result().catch((error: unknown) => error)).toBeInstanceOf(RunFailedError)
    expect((await engine.runs.get(run.id))?.crashes).toBe(0)
    database.prepare("update perdure_checkpoints set value = '1' where name = 'first'").run()
    database.close()
    await engine.requeue(run.id)
    expect(await run.result()).toBe(1)
    expect(bodies).toBe(1)
    await engine.shutdown()
  })
})
