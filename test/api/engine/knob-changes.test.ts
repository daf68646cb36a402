/** Knobs that somebody changes while an engine runs: it goes by them at once, also where another process did it. */
import { describe, expect, it } from 'vitest'
import { Client, Engine, queue, workflow } from '../../../src/index.ts'
import { silent as logger } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { ended } from './support.ts'

describe.each(KINDS)('on $kind', ({ kind, place }) => {
  it('the end of a run is heard that stands in the way of a limit set by another process', async () => {
    const home = place()
    let running = 0
    let most = 0
    const busy = workflow('busy', async (ctx) =>
      ctx.step('work', async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
      }),
    )
    // Nobody polls within the test: only wake-ups get the runs done.
    const queues = [queue('api', { basePollingInterval: '10m' })]
    const engine = ended(new Engine({ store: home.connect(), definitions: [busy], queues, logger }))
    await engine.launch()
    const client = new Client({ store: home.connect(), logger })
    await (await client.start('busy', undefined, { queue: 'api' })).result()
    await client.queues.configure('api', { globalConcurrency: 1 })
    most = 0
    const item = { input: undefined, options: { queue: 'api' } }
    const runs = await client.startMany('busy', [item, item, item, item, item, item])
    for (const run of runs) await run.result({ timeout: '20s' })
    expect(most).toBe(1)
    await client.close()
  })

  it('a retention that is set removes what has been ended for longer already', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const noop = workflow('noop', async () => 1)
    const engine = ended(new Engine({ store: home.connect(), definitions: [noop], queues: [queue('q')], logger }))
    await engine.launch()
    const run = await engine.start(noop, undefined, { queue: 'q' })
    expect(await run.result()).toBe(1)
    await clock.advance('1m')
    await engine.queues.configure('q', { retention: { success: '30s' } })
    await clock.advance('1s')
    expect(await engine.runs.get(run.id), kind).toBeUndefined()
  })

  it('workerConcurrency counts what is in hand by its key, also if the queue was not partitioned when it began', async () => {
    const home = place()
    const held: (() => void)[] = []
    let begun = 0
    const hold = workflow('hold', async (ctx) => {
      begun += 1
      await ctx.step('hold', () => new Promise<void>((resolve) => held.push(resolve)))
    })
    const queues = [queue('q', { workerConcurrency: 1 })]
    const engine = ended(new Engine({ store: home.connect(), definitions: [hold], queues, logger }))
    await engine.launch()
    const client = new Client({ store: home.connect(), logger })
    const options = { queue: 'q', partitionKey: 'a' }
    const first = await client.start('hold', undefined, options)
    await expect.poll(() => held.length).toBe(1)
    await engine.queues.configure('q', { partitioned: true })
    const second = await client.start('hold', undefined, options)
    const other = await client.start('hold', undefined, { queue: 'q', partitionKey: 'b' })
    await expect.poll(() => held.length).toBe(2)
    expect([await second.status(), await other.status(), begun]).toEqual(['ENQUEUED', 'PENDING', 2])
    held.shift()?.()
    await first.result()
    await expect.poll(() => held.length).toBe(2)
    for (const release of held) release()
    await Promise.all([second.result(), other.result()])
    await client.close()
  })
})
