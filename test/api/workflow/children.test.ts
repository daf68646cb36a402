/** Children, through engines. */
import { expect, it } from 'vitest'
import {
  type Definition,
  Engine,
  type Queue,
  QueueDeduplicatedError,
  queue,
  RunCancelledError,
  RunFailedError,
  type Store,
  UnknownDefinitionError,
  UnknownQueueError,
  workflow,
} from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS, type Kind } from '../engine/places.ts'
import { door, ended, refusal, Tally, until } from '../engine/support.ts'

interface Stage {
  readonly clock: MockClock
  readonly engine: Engine
}

async function staged(
  definitions: readonly Definition<never, unknown, unknown>[],
  queues: readonly Queue[] = [],
  clock = new MockClock(),
  store: Store = memory({ clock }),
): Promise<Stage> {
  const engine: Engine = ended(new Engine({ store, definitions, queues, logger: silent }))
  await engine.launch()
  return { clock, engine }
}

function stagedOn(place: Kind['place'], definitions: readonly Definition<never, unknown, unknown>[]): Promise<Stage> {
  const clock = new MockClock()
  return staged(definitions, [], clock, place(clock).connect())
}

const nap = workflow('nap', async (ctx, ms: number) => {
  await ctx.sleep(ms)
  return `slept ${ms}`
})

it.each(KINDS)(
  '$kind: W34: the result of a child is awaited while its parent is suspended, and passed on as it is',
  async ({ place }) => {
    const tally = new Tally()
    const child = workflow('child', async (ctx, n: number) => {
      await ctx.sleep('1h')
      return { n, at: await ctx.now(), map: new Map([[n, 1n]]) }
    })
    const parent = workflow('parent', async (ctx) => {
      tally.add('pass')
      const run = await ctx.start(child, 5)
      return { id: run.id, newlySubmitted: run.newlySubmitted, output: await run.result() }
    })
    const { clock, engine } = await stagedOn(place, [child, parent])
    const run = await engine.start(parent, undefined, { id: 'p' })
    await clock.advance('30m')
    expect([await run.status(), await engine.handle('p~0').status()]).toEqual(['WAITING', 'WAITING'])
    await clock.advance('30m')
    const output = { n: 5, at: new Date(clock.now()), map: new Map([[5, 1n]]) }
    expect(await run.result()).toEqual({ id: 'p~0', newlySubmitted: true, output })
    expect(await engine.runs.get('p~0')).toMatchObject({ parentId: 'p', status: 'SUCCESS' })
    expect(tally.of('pass')).toBe(2)
  },
)

it.each(KINDS)(
  '$kind: W34: a parent finds its children again after its engine has died, and starts none twice',
  async ({ place }) => {
    const clock = new MockClock()
    const home = place(clock)
    const tally = new Tally()
    const child = workflow('child', async (ctx, n: number) => {
      await ctx.step('work', () => void tally.add(`child ${n}`))
      await ctx.sleep('1h')
      return n
    })
    const parent = workflow('parent', async (ctx) => {
      const children = await Promise.all([1, 2, 3].map((n) => ctx.start(child, n)))
      await ctx.sleep('10m')
      return Promise.all(children.map((run) => run.result()))
    })
    const first = await staged([child, parent], [], clock, home.connect())
    const { id } = await first.engine.start(parent)
    await clock.advance('5m')
    await first.engine.shutdown({ timeout: 0 })
    const second = await staged([child, parent], [], clock, home.connect())
    await clock.advance('2h')
    expect(await second.engine.handle(parent, id).result()).toEqual([1, 2, 3])
    expect(tally.all).toEqual({ 'child 1': 1, 'child 2': 1, 'child 3': 1 })
    expect((await second.engine.runs.list({ definition: 'child' })).runs).toHaveLength(3)
  },
)

it.each(KINDS)('$kind: W34: fan-out to 50 children on a queue of 5', async ({ place }) => {
  const tally = new Tally()
  let [running, most] = [0, 0]
  const full = door()
  const page = workflow('page', async (ctx, n: number) => {
    await ctx.step('fetch', async () => {
      running += 1
      most = Math.max(most, running)
      if (running === 5) full.open()
      await full.opened
      running -= 1
      tally.add(`page ${n}`)
    })
    return n * n
  })
  const crawl = workflow('crawl', async (ctx, pages: number) => {
    const numbers = Array.from({ length: pages }, (_, n) => n)
    const runs = await Promise.all(numbers.map((n) => ctx.start(page, n, { queue: 'web' })))
    const squares = await Promise.all(runs.map((run) => run.result()))
    return squares.reduce((sum, square) => sum + square, 0)
  })
  const engine = ended(
    new Engine({
      store: place().connect(),
      definitions: [page, crawl],
      queues: [queue('web', { workerConcurrency: 5 })],
      logger: silent,
    }),
  )
  await engine.launch()
  expect(await (await engine.start(crawl, 50)).result()).toBe(40_425)
  expect([Object.keys(tally.all).length, Math.max(...Object.values(tally.all)), most]).toEqual([50, 1, 5])
})

it.each(KINDS)(
  '$kind: W34: children are cancelled with their parent, and theirs with them, unless detached',
  async ({ place }) => {
    const family = workflow('family', async (ctx, depth: number) => {
      if (depth > 0) {
        await ctx.start('family', depth - 1)
        await ctx.start('nap', 3_600_000, { detached: true })
      }
      await ctx.sleep('1h')
      return depth
    })
    const { clock, engine } = await stagedOn(place, [family, nap])
    const run = await engine.start(family, 2, { id: 'f' })
    await clock.advance('1m')
    expect(await run.cancel()).toBe(true)
    const statuses = await Promise.all(['f', 'f~0', 'f~0~0', 'f~1', 'f~0~1'].map((id) => engine.handle(id).status()))
    expect(statuses).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED', 'WAITING', 'WAITING'])
    await clock.advance('1h')
    expect(await engine.handle('f~0~1').result()).toBe('slept 3600000')
  },
)

it('a child that runs when its parent is cancelled is asked to end', async () => {
  let aborted = ''
  const child = workflow('child', async (ctx) => {
    await ctx.step('long', ({ signal }) => {
      return new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = String(signal.reason.name)
          resolve()
        })
      })
    })
  })
  const parent = workflow('parent', async (ctx) => (await ctx.start(child)).result())
  const { clock, engine } = await staged([child, parent])
  const run = await engine.start(parent, undefined, { id: 'p' })
  await clock.advance('1s')
  expect(await run.cancel()).toBe(true)
  await until(async () => (await engine.handle('p~0').status()) === 'CANCELLED', 'the child is cancelled')
  expect(aborted).toBe('RunCancelledError')
})

it('a parent that fails or returns leaves its children alone', async () => {
  const parent = workflow('parent', async (ctx, fails: boolean) => {
    await ctx.start(nap, 60_000)
    if (fails) throw new Error('no')
  })
  const { clock, engine } = await staged([nap, parent])
  for (const [id, fails] of [
    ['a', true],
    ['b', false],
  ] as const) {
    await engine.start(parent, fails, { id })
    await clock.advance('1m')
    expect(await engine.handle(`${id}~0`).result()).toBe('slept 60000')
  }
})

it('the result of a child that has failed is its failure, catchable, the same on replay', async () => {
  const bad = workflow('bad', async (ctx) => {
    await ctx.sleep('1h')
    throw Object.assign(new RangeError('too much'), { amount: 7 })
  })
  const seen: unknown[] = []
  const parent = workflow('parent', async (ctx) => {
    const child = await ctx.start(bad)
    const error = await refusal(child.result())
    seen.push(error)
    await ctx.sleep('1h')
    throw error
  })
  const { clock, engine } = await staged([bad, parent])
  const run = await engine.start(parent, undefined, { id: 'p' })
  await clock.advance('3h')
  const fields = {
    runId: 'p~0',
    kind: 'error',
    attempts: 1,
    reason: 'too much',
    cause: { name: 'RangeError', amount: 7 },
  }
  expect(seen).toHaveLength(2)
  for (const error of seen) {
    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toMatchObject(fields)
  }
  expect(await refusal(engine.handle('p~0').result())).toMatchObject(fields)
  expect(await refusal(run.result())).toMatchObject({ runId: 'p', cause: { code: 'RUN_FAILED', ...fields } })
})

it('the result of a child that was cancelled, or ran out of time, says so', async () => {
  const parent = workflow('parent', async (ctx, timeout: number) => {
    const child = await ctx.start(nap, 7_200_000, { timeout })
    return refusal(child.result())
  })
  const { clock, engine } = await staged([nap, parent])
  const [cancelled, late] = [await engine.start(parent, 86_400_000, { id: 'c' }), await engine.start(parent, 60_000)]
  await clock.advance('10m')
  expect(await engine.cancel('c~0')).toBe(true)
  await clock.advance(0)
  expect(await cancelled.result()).toMatchObject({ reason: 'cancelled' })
  expect(await late.result()).toBeInstanceOf(RunCancelledError)
  expect(await late.result()).toMatchObject({ reason: 'timeout' })
})

it('W34: a requeued parent starts anew what its failure had not kept', async () => {
  let fails = true
  const parent = workflow('parent', async (ctx) => {
    const first = await ctx.start(nap, 1)
    await ctx.step('may fail', () => {
      if (fails) throw new Error('not yet')
    })
    const second = await ctx.start(nap, 2)
    return [first.id, second.id, await first.result(), await second.result()]
  })
  const { clock, engine } = await staged([nap, parent])
  const run = await engine.start(parent, undefined, { id: 'p' })
  await clock.advance('1s')
  expect(await run.status()).toBe('ERROR')
  fails = false
  await engine.requeue('p')
  await clock.advance('1s')
  expect(await run.result()).toEqual(['p~0', 'p~1.2', 'slept 1', 'slept 2'])
})

it('a child whose deduplication id is held is refused, or is the one that holds it', async () => {
  const parent = workflow('parent', async (ctx) => {
    const options = { queue: 'q', dedupId: 'only one' }
    const first = await ctx.start(nap, 60_000, options)
    const refused = await refusal(ctx.start(nap, 60_000, options))
    const same = await ctx.start(nap, 60_000, { ...options, dedupPolicy: 'returnExisting' })
    await same.result()
    const next = await ctx.start(nap, 1, options)
    return { refused, ids: [first.id, same.id, next.id], newlySubmitted: [same.newlySubmitted, next.newlySubmitted] }
  })
  const { clock, engine } = await staged([nap, parent], [queue('q')])
  const run = await engine.start(parent, undefined, { id: 'p' })
  await clock.advance('2m')
  const { refused, ...rest } = await run.result()
  expect(refused).toBeInstanceOf(QueueDeduplicatedError)
  expect(refused).toMatchObject({ queue: 'q', dedupId: 'only one', holder: 'p~0' })
  expect(rest).toEqual({ ids: ['p~0', 'p~0', 'p~4'], newlySubmitted: [false, true] })
})

it('children wait for room in their queue; on the limit of their own parent they need it released while waiting', async () => {
  const parent = workflow('parent', async (ctx) => {
    const children = [await ctx.start(nap, 60_000, { queue: 'one' }), await ctx.start(nap, 60_000, { queue: 'one' })]
    return Promise.all(children.map((child) => child.result()))
  })
  const one = queue('one', { globalConcurrency: 1, releaseWhileWaiting: true })
  const { clock, engine } = await staged([nap, parent], [one])
  const run = await engine.start(parent, undefined, { queue: 'one' })
  await clock.advance('3m')
  expect(await run.result()).toEqual(['slept 60000', 'slept 60000'])
  const held = await staged([nap, parent], [queue('one', { globalConcurrency: 1 })])
  const stuck = await held.engine.start(parent, undefined, { queue: 'one', id: 'p' })
  await held.clock.advance('3m')
  expect([await stuck.status(), await held.engine.handle('p~0').status()]).toEqual(['WAITING', 'ENQUEUED'])
})

it('what a start is refused with is thrown, and recorded', async () => {
  const parent = workflow('parent', async (ctx) => {
    const errors = [
      await refusal(ctx.start('unheard of')),
      await refusal(ctx.start(nap, 1, { queue: 'unheard of' })),
      await refusal(ctx.start(nap, 1, { dedupId: 'without a queue' })),
      await refusal(ctx.start(nap, 1, { id: 'a~b' })),
    ]
    await ctx.sleep('1h')
    return errors
  })
  const { clock, engine } = await staged([nap, parent])
  const run = await engine.start(parent)
  await clock.advance('2h')
  expect(await run.result()).toMatchObject([
    expect.any(UnknownDefinitionError),
    expect.any(UnknownQueueError),
    { code: 'CONFIGURATION' },
    { code: 'INVALID_ID' },
  ])
})

it('a child is run by another engine than its parent, and wakes it there', async () => {
  const clock = new MockClock()
  const store = memory({ clock })
  const where: string[] = []
  const parentOf = (name: string) =>
    workflow('parent', async (ctx) => {
      where.push(`parent in ${name}`)
      return (await ctx.start('child', undefined, { queue: 'far' })).result()
    })
  const childOf = (name: string) =>
    workflow('child', async (ctx) => {
      await ctx.sleep('1m')
      return `child in ${name}`
    })
  const queues = [queue('far')]
  const near = ended(
    new Engine({ store, definitions: [parentOf('near'), childOf('near')], queues, listenQueues: [], logger: silent }),
  )
  const far = ended(new Engine({ store, definitions: [childOf('far')], queues, logger: silent }))
  await near.launch()
  const run = await near.start('parent')
  await clock.advance('1m')
  expect(await run.status()).toBe('WAITING')
  await far.launch()
  await clock.advance('2m')
  // Once it is claimed, any engine with the definition may go on with it.
  expect(await run.result()).toMatch(/^child in /)
  expect(new Set(where)).toEqual(new Set(['parent in near']))
})

it('a child that takes a moment costs its parent no suspension', async () => {
  const quick = workflow('quick', async (ctx, n: number) => {
    await ctx.step('work', () => new Promise((resolve) => setTimeout(resolve, 5)))
    return n
  })
  let passes = 0
  const parent = workflow('parent', async (ctx) => {
    passes += 1
    let sum = 0
    for (let n = 0; n < 5; n += 1) sum += await (await ctx.start(quick, n)).result()
    return sum
  })
  const engine = ended(new Engine({ store: memory(), definitions: [quick, parent], logger: silent }))
  await engine.launch()
  expect(await (await engine.start(parent)).result()).toBe(10)
  expect(passes).toBe(1)
})

it('W34: a workflow that starts itself, ten deep', async () => {
  const count = workflow('count', async (ctx, n: number): Promise<number> => {
    return n === 0 ? 0 : (await (await ctx.start(count, n - 1)).result()) + 1
  })
  const { engine } = await staged([count])
  const run = await engine.start(count, 10, { id: 'c' })
  expect(await run.result()).toBe(10)
  expect(await engine.handle(`c${'~0'.repeat(10)}`).result()).toBe(0)
})
