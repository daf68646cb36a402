/** `runs.explain`: why a run is not running, one test a reason. */
import { describe, expect, it } from 'vitest'
import { Client, Engine, type Explanation, InvalidIdError, queue, type Reason, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { processIdentity } from '../../../src/runtime/host.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, until } from './support.ts'

const logger = silent

describe.each(KINDS)('explain on $kind', ({ place }) => {
  const echo = workflow('echo', async (_ctx, n: number) => n)
  const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))

  async function explained({ runs }: Pick<Client, 'runs'>, id: string): Promise<Explanation> {
    const explanation = await runs.explain(id)
    if (explanation === undefined) throw new Error('there is no such run')
    return explanation
  }
  async function reasonsFor(client: Pick<Client, 'runs'>, { id }: { readonly id: string }): Promise<readonly Reason[]> {
    return (await explained(client, id)).reasons
  }
  const typesFor = async (client: Pick<Client, 'runs'>, run: { readonly id: string }): Promise<string[]> =>
    (await reasonsFor(client, run)).map(({ type }) => type)

  it('an unknown run, and an id that is none', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], logger }))
    expect(await engine.runs.explain('nobody')).toBeUndefined()
    expect(await refusal(engine.runs.explain(''))).toBeInstanceOf(InvalidIdError)
  })

  it('no live process has its definition; then it is due', async () => {
    const home = place()
    const client = new Client({ store: home.connect(), logger })
    const other = ended(new Engine({ store: home.connect(), definitions: [nap], logger }))
    await other.launch()
    const run = await client.start('echo', 1, { id: 'r' })
    expect(await reasonsFor(client, run)).toEqual([{ type: 'noProcess', definition: 'echo' }])
    expect(String(await client.runs.explain('r'))).toBe(
      `Run r of 'echo' is ENQUEUED.\n- No live process has the definition 'echo'.`,
    )
    const store = home.connect()
    store.fate = (method) => (method === 'claim' ? 'unavailable' : 'answered')
    const engine = ended(new Engine({ store, definitions: [echo], logger }))
    await engine.launch()
    expect(await reasonsFor(client, run)).toEqual([{ type: 'due' }])
    expect(JSON.parse(JSON.stringify(await client.runs.explain('r')))).toEqual({
      ...{ runId: 'r', definition: 'echo', status: 'ENQUEUED', reasons: [{ type: 'due' }] },
    })
    // Or the shutdown would wait for the answer to a claim.
    store.fate = () => 'answered'
    await client.close()
  })

  it('a process that has died is none', async () => {
    const store = place().connect()
    const client = new Client({ store, logger })
    const run = await client.start('echo', 1)
    const identity = processIdentity()
    const process = { ...identity, owner: 'dead', definitions: ['echo'], queues: [], version: null }
    await store.registerProcess({ ...process, pidStart: identity.pidStart === null ? null : '1' })
    expect(await typesFor(client, run)).toEqual(identity.pidStart === null ? ['due'] : ['noProcess'])
    await client.close()
  })

  it('no process takes runs from its queue, or nobody has registered it', async () => {
    const home = place()
    const client = new Client({ store: home.connect(), logger })
    const run = await client.start('echo', 1, { queue: 'media' })
    expect(await reasonsFor(client, run)).toEqual([
      { type: 'queueUnregistered', queue: 'media' },
      { type: 'noProcess', definition: 'echo' },
    ])
    const without = ended(new Engine({ store: home.connect(), definitions: [echo], logger }))
    await without.launch()
    expect(await reasonsFor(client, run)).toEqual([{ type: 'queueUnregistered', queue: 'media' }])
    await without.shutdown()
    const engine = ended(
      new Engine({
        ...{ store: home.connect(), definitions: [echo], executorId: 'deaf', logger },
        ...{ queues: [queue('media')], listenQueues: [] },
      }),
    )
    await engine.launch()
    expect(await reasonsFor(client, run)).toEqual([
      { type: 'notListened', queue: 'media', executors: [expect.stringMatching(/^deaf:/)] },
    ])
    const text = String(await client.runs.explain(run.id))
    expect(text).toContain(`of 'echo' on queue 'media' is ENQUEUED.`)
    expect(text).toMatch(/No live process that has its definition \(deaf:.*\) takes runs from its queue/)
    await client.close()
  })

  it('its queue is paused; a delay and a sleep are said beside that', async () => {
    const clock = new MockClock()
    const engine = ended(
      new Engine({ store: place(clock).connect(), definitions: [echo, nap], queues: [queue('media')], logger }),
    )
    await engine.launch()
    const sleeping = await engine.start(nap, undefined, { queue: 'media' })
    await clock.advance('1s')
    await engine.queues.pause('media')
    const enqueued = await engine.start(echo, 1, { queue: 'media' })
    const delayed = await engine.start(echo, 1, { queue: 'media', delay: '1h' })
    const paused: Reason = { type: 'queuePaused', queue: 'media' }
    const until = new Date(clock.now() + 3_600_000)
    expect(await reasonsFor(engine, enqueued)).toEqual([paused])
    expect(await reasonsFor(engine, delayed)).toEqual([{ type: 'delayed', until }, paused])
    const [time, ...rest] = await reasonsFor(engine, sleeping)
    expect(time).toMatchObject({ type: 'waitingForTime', timeout: false })
    expect(rest).toEqual([paused])
    expect(String(await engine.runs.explain(delayed.id))).toBe(
      [
        `Run ${delayed.id} of 'echo' on queue 'media' is DELAYED.`,
        `- It may not start before ${until.toISOString()}.`,
        `- Its queue is paused; queues.resume('media') lets it go on.`,
      ].join('\n'),
    )
    await clock.advance('2h')
    expect(await reasonsFor(engine, sleeping)).toEqual([paused])
    expect(await typesFor(engine, delayed)).toEqual(['queuePaused', 'ahead'])
  })

  it('the global limit, and who holds it; then how many go first', async () => {
    const opened = door()
    let began = 0
    const gated = workflow('gated', async (ctx) => {
      began += 1
      await ctx.step('wait', () => opened.opened)
    })
    const queues = [queue('media', { globalConcurrency: 2 })]
    const engine = ended(new Engine({ store: place().connect(), definitions: [gated], queues, logger }))
    await engine.launch()
    const runs = []
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      runs.push(await engine.start(gated, undefined, { id, queue: 'media' }))
    }
    await until(() => began === 2)
    const limit = { type: 'globalConcurrency', queue: 'media', partitionKey: undefined, limit: 2, active: 2 }
    const full = { ...limit, holders: ['a', 'b'], deadlocked: [] }
    expect(await reasonsFor(engine, { id: 'c' })).toEqual([full])
    expect(await reasonsFor(engine, { id: 'e' })).toEqual([full, { type: 'ahead', count: 2 }])
    expect(String(await engine.runs.explain('e'))).toContain(
      'globalConcurrency 2 is used up by a, b.\n- 2 runs go first.',
    )
    const [running] = await reasonsFor(engine, { id: 'a' })
    expect(running).toMatchObject({ type: 'running', lost: false, executor: expect.any(String) })
    await engine.cancel('a')
    expect(await typesFor(engine, { id: 'a' })).toEqual(['running', 'cancelRequested'])
    opened.open()
    for (const run of runs) await run.result().catch(() => {})
  })

  it('the limit of a partition key', async () => {
    const clock = new MockClock()
    const queues = [queue('customers', { partitioned: true, globalConcurrency: 1 })]
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], queues, logger }))
    await engine.launch()
    const of = (id: string, partitionKey: string) => ({ id, queue: 'customers', partitionKey })
    await engine.start(nap, undefined, of('a1', 'a'))
    await clock.advance('1s')
    await engine.start(nap, undefined, of('a2', 'a'))
    const keyless = await engine.start(nap, undefined, { queue: 'customers' })
    await clock.advance('1s')
    expect(await reasonsFor(engine, { id: 'a2' })).toEqual([
      {
        ...{ type: 'globalConcurrency', queue: 'customers', partitionKey: 'a', limit: 1, active: 1 },
        ...{ holders: ['a1'], deadlocked: [] },
      },
    ])
    expect(String(await engine.runs.explain('a2'))).toContain(
      `globalConcurrency 1 of partition key 'a' is used up by a1.`,
    )
    expect(await reasonsFor(engine, keyless)).toEqual([{ type: 'noPartitionKey', queue: 'customers' }])
    expect(String(await engine.runs.explain(keyless.id))).toContain('it is never run there')
  })

  it('a resume needs room of the global limit only where it has let go of its place, and none of the rate limit', async () => {
    const clock = new MockClock()
    const opened = door()
    const work = workflow('work', async (ctx) => {
      await ctx.sleep('1m')
      await ctx.step('wait', () => opened.opened)
    })
    const limits = { globalConcurrency: 1, rateLimiter: { limit: 1, period: '1s' } } as const
    const queues = [queue('held', limits), queue('let go', { ...limits, releaseWhileWaiting: true })]
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [work], queues, logger }))
    await engine.launch()
    const held = await engine.start(work, undefined, { queue: 'held' })
    for (const id of ['one', 'two']) await engine.start(work, undefined, { id, queue: 'let go' })
    await clock.advance('10s')
    await engine.queues.pause('held')
    await clock.advance('2m')
    expect(await reasonsFor(engine, held)).toEqual([{ type: 'queuePaused', queue: 'held' }])
    expect(await reasonsFor(engine, { id: 'two' })).toMatchObject([
      { type: 'globalConcurrency', limit: 1, active: 1, holders: ['one'], deadlocked: [] },
    ])
    opened.open()
  })

  it('when the rate limit opens', async () => {
    const clock = new MockClock()
    const queues = [queue('api', { rateLimiter: { limit: 1, period: '1m' } })]
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [echo], queues, logger }))
    await engine.launch()
    const begun = clock.now()
    await (await engine.start(echo, 1, { queue: 'api' })).result()
    const next = await engine.start(echo, 2, { queue: 'api' })
    const last = await engine.start(echo, 3, { queue: 'api' })
    await clock.advance('10s')
    const opensAt = new Date(begun + 60_000)
    const limited = { type: 'rateLimit', queue: 'api', partitionKey: undefined, opensAt }
    expect(await reasonsFor(engine, next)).toEqual([limited])
    expect(await reasonsFor(engine, last)).toEqual([limited, { type: 'ahead', count: 1 }])
    expect(String(await engine.runs.explain(last.id))).toContain(
      `lets the next run start at ${opensAt.toISOString()}.\n- One run goes first.`,
    )
  })

  it('a version of which no live process is', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const engineOf = (version: string): Engine =>
      ended(new Engine({ store: home.connect(), definitions: [nap], version, logger }))
    const old = engineOf('v1')
    await old.launch()
    const run = await old.start(nap)
    await clock.advance('1s')
    expect((await old.runs.get(run.id))?.version).toBe('v1')
    await old.shutdown()
    const next = engineOf('v2')
    await next.launch()
    await clock.advance('2h')
    expect(await reasonsFor(next, run)).toEqual([{ type: 'otherVersion', version: 'v1', versions: ['v2'] }])
    expect(String(await next.runs.explain(run.id))).toContain(`version 'v1' of the code; live processes are of 'v2'.`)
    const both = engineOf('v1')
    await both.launch()
    await clock.advance('1s')
    expect(await run.status().catch(() => 'shut down')).toBe('shut down')
    expect(await next.handle(run.id).status()).toBe('SUCCESS')
  })

  it('a timer, and the timeout of the run', async () => {
    const clock = new MockClock()
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    await engine.launch()
    const start = clock.now()
    const long = await engine.start(nap)
    const short = await engine.start(nap, undefined, { timeout: '10m' })
    await clock.advance('1m')
    expect(await reasonsFor(engine, long)).toEqual([
      { type: 'waitingForTime', until: new Date(start + 3_600_000), timeout: false },
    ])
    expect(await reasonsFor(engine, short)).toEqual([
      { type: 'waitingForTime', until: new Date(start + 600_000), timeout: true },
    ])
    expect(String(await engine.runs.explain(long.id))).toMatch(/- It is suspended until 2026-.*Z\.$/)
    expect(String(await engine.runs.explain(short.id))).toMatch(/- Its timeout is over at 2026-.*Z\.$/)
  })

  it('how it ended, with its attempts', async () => {
    let fail = true
    const fickle = workflow('fickle', async () => {
      if (fail) throw new Error('no')
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [fickle], logger }))
    await engine.launch()
    const run = await engine.start(fickle)
    await refusal(run.result())
    expect(await reasonsFor(engine, run)).toMatchObject([
      { type: 'ended', status: 'ERROR', failureKind: 'error', attempts: [{ attempt: 1, outcome: 'failed' }] },
    ])
    fail = false
    await engine.requeue(run.id)
    await run.result()
    const explanation = await explained(engine, run.id)
    expect(explanation.reasons).toMatchObject([{ type: 'ended', status: 'SUCCESS', failureKind: undefined }])
    expect(explanation.toString().replaceAll(/\d{4}-\S+Z/g, 'T')).toBe(
      [
        `Run ${run.id} of 'fickle' is SUCCESS.`,
        '- It ended SUCCESS at T.',
        '- Attempt 1: failed (error) at T.',
        '- Requeued at T.',
        '- Attempt 1 after requeue 1: succeeded at T.',
      ].join('\n'),
    )
  })

  it('it was running in a process that has lost it', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const opened = door()
    const gated = workflow('gated', async (ctx) => ctx.step('wait', () => opened.opened))
    const store = home.connect()
    const engine = ended(new Engine({ store, definitions: [gated], logger }))
    await engine.launch()
    const run = await engine.start(gated)
    const client = new Client({ store: home.connect(), logger })
    expect(await reasonsFor(client, run)).toMatchObject([{ type: 'running', lost: false }])
    store.die()
    await clock.advance('1m')
    expect(await reasonsFor(client, run)).toMatchObject([{ type: 'running', lost: true }])
    expect(String(await client.runs.explain(run.id))).toMatch(
      /which has died or lost it: another process takes it over/,
    )
    await client.close()
    opened.open()
  })
})

describe.each(KINDS)('explain of waits on $kind', ({ place }) => {
  it('a signal by its key, a child by its status', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))
    const parent = workflow('parent', async (ctx) => {
      const child = await ctx.start(nap)
      return Promise.all([child.result(), ctx.waitForSignal('approved')])
    })
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap, parent], logger }))
    await engine.launch()
    const { id } = await engine.start(parent, undefined, { id: 'p' })
    await clock.advance('1m')
    expect(await engine.runs.get(id)).toMatchObject({ status: 'WAITING' })
    const explanation = await engine.runs.explain(id)
    const signal: Reason = { type: 'waitingForSignal', key: 'approved' }
    const child: Reason = { type: 'waitingForChild', childId: 'p~0', status: 'WAITING' }
    expect(explanation?.reasons).toHaveLength(2)
    expect(explanation?.reasons).toEqual(expect.arrayContaining([signal, child]))
    expect(String(explanation)).toContain(`- It waits for a signal of the key 'approved'.`)
    expect(String(explanation)).toContain('- It waits for run p~0, which is WAITING.')
    expect(await engine.runs.get('p~0')).toMatchObject({ parentId: 'p' })
  })

  it('a parent that waits for a run on its own limit, itself or through another run', async () => {
    const clock = new MockClock()
    const leaf = workflow('leaf', async () => {})
    const parent = workflow('parent', async (ctx, between: boolean) => {
      const child = between ? await ctx.start(middle) : await ctx.start(leaf, undefined, { queue: 'media' })
      await child.result()
    })
    const middle = workflow('middle', async (ctx): Promise<void> => {
      const child = await ctx.start(leaf, undefined, { queue: 'media' })
      await child.result()
    })
    const queues = [queue('media', { globalConcurrency: 1 })]
    const definitions = [leaf, parent, middle]
    const engine = ended(new Engine({ store: place(clock).connect(), definitions, queues, logger }))
    await engine.launch()
    for (const between of [false, true]) {
      const id = between ? 'p2' : 'p1'
      const run = await engine.start(parent, between, { id, queue: 'media' })
      await clock.advance('1m')
      const leafId = between ? `${id}~0~0` : `${id}~0`
      const explanation = await engine.runs.explain(leafId)
      expect(explanation?.reasons).toMatchObject([{ type: 'globalConcurrency', holders: [id], deadlocked: [id] }])
      expect(String(explanation)).toContain(`Run ${id} waits for this very run and holds its place meanwhile`)
      expect((await engine.runs.explain(id))?.reasons).toMatchObject([
        { type: 'waitingForChild', childId: `${id}~0`, status: between ? 'WAITING' : 'ENQUEUED' },
      ])
      await engine.queues.configure('media', { globalConcurrency: 2 })
      await clock.advance('1m')
      expect(await run.status()).toBe('SUCCESS')
      await engine.queues.configure('media', { globalConcurrency: 1 })
    }
  })
})
