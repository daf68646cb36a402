/** Which process runs what: by definition, by the queues it listens to, by version. */
import { describe, expect, it } from 'vitest'
import { Client, Engine, type EngineOptions, queue, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS, type Place } from './places.ts'
import { ended } from './support.ts'

const logger = silent
const queues = [queue('media'), queue('email')]

describe.each(KINDS)('who runs what on $kind', ({ place }) => {
  const nap = workflow('nap', async (ctx) => ctx.sleep('1m'))
  const echo = workflow('echo', async (_ctx, n: number) => n)

  type Options = Partial<Pick<EngineOptions<[]>, 'listenQueues' | 'version' | 'executorId'>>
  async function launched(home: Place, options: Options): Promise<Engine> {
    const definitions = [nap, echo]
    const engine = ended(new Engine({ store: home.connect(), definitions, queues, logger, ...options }))
    await engine.launch()
    return engine
  }

  it('Q22 a queue that it does not listen to takes work and is not dispatched here; the internal one always is', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const one = await launched(home, { listenQueues: ['media'], executorId: 'one' })
    const media = await one.start(echo, 1, { queue: 'media' })
    const email = await one.start(echo, 2, { queue: 'email' })
    const client = new Client({ store: home.connect(), logger })
    const internal = await client.start('echo', 3)
    await clock.advance('1m')
    expect(await Promise.all([media.status(), email.status(), internal.status()])).toEqual([
      ...['SUCCESS', 'ENQUEUED', 'SUCCESS'],
    ])
    await launched(home, { listenQueues: ['email'], executorId: 'two' })
    await clock.advance('1s')
    expect(await email.result()).toBe(2)
    expect((await client.runs.get(email.id))?.executor).toMatch(/^two:/)
    await client.close()
  })

  it('listening to none serves runs without a queue alone', async () => {
    const clock = new MockClock()
    const one = await launched(place(clock), { listenQueues: [] })
    const queued = await one.start(echo, 1, { queue: 'media' })
    expect(await (await one.start(echo, 2)).result()).toBe(2)
    await clock.advance('1m')
    expect(await queued.status()).toBe('ENQUEUED')
  })

  it('Q23 a run belongs to the first version that claims it, on a queue or started here', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const old = await launched(home, { version: 'v1', executorId: 'old' })
    const direct = await old.start(nap)
    const queued = await old.start(nap, undefined, { queue: 'media' })
    await clock.advance('1s')
    for (const { id } of [direct, queued]) expect((await old.runs.get(id))?.version).toBe('v1')
    const unclaimed = await old.start(echo, 1, { queue: 'media', delay: '1h' })
    await old.shutdown()

    const next = await launched(home, { version: 'v2', executorId: 'next' })
    await clock.advance('2h')
    expect([await next.handle(direct.id).status(), await next.handle(queued.id).status()]).toEqual([
      ...['WAITING', 'WAITING'],
    ])
    expect(await next.runs.get(unclaimed.id)).toMatchObject({ status: 'SUCCESS', version: 'v2' })
    expect((await next.runs.get((await next.start(echo, 1)).id))?.version).toBe('v2')

    const again = await launched(home, { version: 'v1', executorId: 'again' })
    await clock.advance('1s')
    expect([await again.handle(direct.id).status(), await again.handle(queued.id).status()]).toEqual([
      ...['SUCCESS', 'SUCCESS'],
    ])
    for (const { id } of [direct, queued]) expect((await again.runs.get(id))?.executor).toMatch(/^again:/)
  })

  it('Q23 an engine without a version takes any run, and binds none', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const old = await launched(home, { version: 'v1' })
    const bound = await old.start(nap)
    await clock.advance('1s')
    await old.shutdown()
    const plain = await launched(home, {})
    const free = await plain.start(nap)
    await clock.advance('1h')
    expect(await plain.runs.get(bound.id)).toMatchObject({ status: 'SUCCESS', version: 'v1' })
    expect(await plain.runs.get(free.id)).toMatchObject({ status: 'SUCCESS', version: undefined })
  })
})
