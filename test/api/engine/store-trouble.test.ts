/** W9 D-33: trouble with the store is no outcome. A delivery waits for it, and user code can't catch it. */
import { describe, expect, it } from 'vitest'
import { Engine, EngineShutdownError, RunFailedError, StoreClosedError, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { LOCAL_KINDS } from './places.ts'
import { door, ended, notebook, refusal, Tally, until } from './support.ts'
import type { TroubleStore } from './trouble-store.ts'

const logger = silent

/** Fails the next `times` commits that hold a command of the type. */
function failing(
  store: TroubleStore,
  type: string,
  fate: 'unavailable' | 'lost',
  times: number,
): { readonly failed: number } {
  const count = { failed: 0 }
  store.fate = (method, commands) => {
    if (method !== 'commit' || count.failed >= times || !commands.some((command) => command.type === type))
      return 'answered'
    count.failed += 1
    return fate
  }
  return count
}

// The trouble is made above the store; that of a real server has tests of its own (test/crash).
describe.each(LOCAL_KINDS)('store trouble on $kind', ({ place }) => {
  const tally = new Tally()
  const order = workflow('order', async (ctx) => {
    const seen: unknown[] = []
    for (const name of ['reserve', 'charge', 'ship']) {
      try {
        seen.push(await ctx.step(name, () => tally.add(`${ctx.runId} ${name}`)))
      } catch (error) {
        seen.push(error)
      }
    }
    return seen
  })

  it.each([
    ['enqueue', 'unavailable'],
    ['enqueue', 'lost'],
    ['checkpoint', 'unavailable'],
    ['checkpoint', 'lost'],
    ['settle', 'unavailable'],
    ['settle', 'lost'],
  ] as const)('W9 %s %s for a while: each step once, one run, the right result', async (type, fate) => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [order], logger }))
    await engine.launch()
    const count = failing(store, type, fate, 4)
    const run = await engine.start(order, undefined, { id: `${type} ${fate}` })
    expect(run.newlySubmitted).toBe(true)
    expect(await run.result()).toEqual([1, 1, 1])
    expect(count.failed).toBe(4)
    expect(await engine.runs.get(run.id)).toMatchObject({ attempt: 1, crashes: 0 })
    expect((await engine.runs.list()).runs).toHaveLength(1)
  })

  it('a cancel and a requeue whose answers are lost are answered as they were', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [order], logger }))
    const run = await engine.start(order)
    failing(store, 'cancel', 'lost', 2)
    expect(await run.cancel()).toBe(true)
    failing(store, 'requeue', 'lost', 2)
    expect(await engine.requeue(run.id)).toBe(true)
    expect((await engine.runs.attempts(run.id)).map(({ outcome }) => outcome)).toEqual(['requeued'])
  })

  it('every sort of call fails for a while: all runs end, each step once', async () => {
    const store = place().connect()
    const log = notebook()
    const engine = ended(new Engine({ store, definitions: [order], logger: log }))
    await engine.launch()
    let failed = 0
    // By the calls of each sort: a pattern over all of them would meet those that come at intervals of their own again and again.
    store.fate = (method) => {
      if (store.calls(method) % 3 === 0) return 'answered'
      failed += 1
      return store.calls(method) % 3 === 1 ? 'unavailable' : 'lost'
    }
    const runs = await Promise.all(
      Array.from({ length: 20 }, (_, n) => engine.start(order, undefined, { id: `all ${n}` })),
    )
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array(20).fill([1, 1, 1]))
    expect(failed).toBeGreaterThan(15)
    store.fate = () => 'answered'
    // One line when it begins and one when it is over, however many attempts there were in between.
    expect(log.messages('error').length).toBeLessThan(log.messages('warn').length + 10)
  })

  it('a record that the database refuses ends the run instead of repeating its effect', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [order], logger }))
    await engine.launch()
    store.fate = (_method, commands) =>
      commands.some((command) => command.type === 'checkpoint' && command.entries.some(({ name }) => name === 'charge'))
        ? 'refused'
        : 'answered'
    const run = await engine.start(order, undefined, { id: 'refused' })
    const error = await refusal(run.result())
    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toMatchObject({ kind: 'serialization', cause: { message: 'the database refuses this' } })
    expect([tally.of('refused charge'), tally.of('refused ship')]).toEqual([1, 0])
    expect(await run.status()).toBe('DEAD')
  })

  it('an output that the database refuses is an ERROR of kind serialization', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [order], logger }))
    await engine.launch()
    store.fate = (_method, commands) =>
      commands.some((command) => command.type === 'settle' && command.settlement.type === 'succeed')
        ? 'refused'
        : 'answered'
    const run = await engine.start(order)
    expect(await refusal(run.result())).toMatchObject({ kind: 'serialization' })
    expect(await run.status()).toBe('ERROR')
  })

  it('F-02 D-33 a shutdown while the store is gone returns, and no outcome is recorded', async () => {
    const home = place()
    const store = home.connect()
    const leave = door()
    const entered = door()
    const held = workflow('held', async (ctx) => {
      await ctx.step('wait', async () => {
        entered.open()
        await leave.opened
      })
      return 'done'
    })
    const engine = new Engine({ store, definitions: [held], logger })
    await engine.launch()
    const run = await engine.start(held, undefined, { id: 'h' })
    await entered.opened
    const result = refusal(run.result())
    store.fate = () => 'unavailable'
    const start = performance.now()
    const closing = engine.shutdown({ timeout: 50 })
    const late = refusal(engine.start(held))
    leave.open()
    await closing
    expect(performance.now() - start).toBeLessThan(12_000)
    expect(await late).toBeInstanceOf(EngineShutdownError)
    expect(await result).toBeInstanceOf(StoreClosedError)
    const reader = ended(new Engine({ store: home.connect(), definitions: [], logger }))
    expect(await reader.runs.get('h')).toMatchObject({ status: 'PENDING', crashes: 0 })
  }, 30_000)

  it('F-02 a launch that hangs on the store does not hang the shutdown', async () => {
    const store = place().connect()
    store.fate = (method) => (method === 'registerProcess' ? 'unavailable' : 'answered')
    const engine = new Engine({ store, definitions: [order], logger })
    const launching = refusal(engine.launch())
    await until(() => store.calls('registerProcess') > 1)
    await engine.shutdown({ timeout: 0 })
    expect(await launching).toBeInstanceOf(EngineShutdownError)
  }, 30_000)

  it('a launch that fails can be tried again', async () => {
    const store = place().connect()
    store.fate = (method) => (method === 'open' || method === 'registerProcess' ? 'refused' : 'answered')
    const engine = ended(new Engine({ store, definitions: [order], logger }))
    expect(await refusal(engine.launch())).toMatchObject({ message: 'the database refuses this' })
    store.fate = (method) => (method === 'registerProcess' ? 'refused' : 'answered')
    expect(await refusal(engine.launch())).toMatchObject({ message: 'the database refuses this' })
    store.fate = () => 'answered'
    await engine.launch()
    expect(await (await engine.start(order)).result()).toEqual([1, 1, 1])
  })

  it('a logger that throws harms no run', async () => {
    const store = place().connect()
    const angry = (): never => {
      throw new Error('the log is full')
    }
    const engine = ended(
      new Engine({ store, definitions: [order], logger: { debug: angry, info: angry, warn: angry, error: angry } }),
    )
    await engine.launch()
    failing(store, 'checkpoint', 'unavailable', 2)
    expect(await (await engine.start(order)).result()).toEqual([1, 1, 1])
  })
})
