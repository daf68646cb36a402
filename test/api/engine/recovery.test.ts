/** Runs whose engine has died, was drained, or never existed: who takes them over, when, and what it costs them. */
import { describe, expect, it } from 'vitest'
import { Engine, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { freshFile, KINDS } from './places.ts'
import { door, ended, notebook, refusal, Tally, until } from './support.ts'

const logger = silent

describe.each(KINDS)('recovery on $kind', ({ place }) => {
  it('D-07 D-14 W17 W19 a dead engine is succeeded when its leases end, once, from the last record', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const tally = new Tally()
    const hold = door()
    const order = workflow('order', async (ctx) => {
      await ctx.step('reserve', () => tally.add('reserve'))
      await ctx.step('charge', async () => {
        if (tally.add('charge') === 1) await hold.opened
      })
      return ctx.step('ship', () => tally.add('ship'))
    })
    const first = home.connect()
    const dead = ended(new Engine({ store: first, definitions: [order], logger }))
    await dead.launch()
    await dead.start(order, undefined, { id: 'o' })
    await until(() => tally.of('charge') === 1)
    first.die()
    const heirs = [1, 2].map(() => ended(new Engine({ store: home.connect(), definitions: [order], logger })))
    for (const heir of heirs) await heir.launch()
    await clock.advance('29s')
    expect(await heirs[0]?.handle('o').status()).toBe('PENDING')
    expect(tally.of('charge')).toBe(1)
    await clock.advance('7s')
    expect(await heirs[0]?.handle('o').result()).toBe(1)
    // The zombie wakes and writes nothing.
    hold.open()
    await clock.advance('1m')
    expect(tally.all).toEqual({ reserve: 1, charge: 2, ship: 1 })
    expect(await heirs[1]?.runs.get('o')).toMatchObject({ status: 'SUCCESS', attempt: 2, crashes: 1 })
    expect(await heirs[1]?.runs.attempts('o')).toMatchObject([
      { attempt: 1, outcome: 'crashed', failureKind: 'crashed' },
      { attempt: 2, outcome: 'succeeded' },
    ])
  })

  it('W1 steps, sleeps and clocks share one count of positions; what is recorded never runs again', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const tally = new Tally()
    const body = workflow('body', async (ctx) => {
      const keys: string[] = []
      await ctx.step('a', (step) => keys.push(step.idempotencyKey) + tally.add('a'))
      await ctx.sleep('1h')
      await ctx.now()
      await ctx.step('a', (step) => keys.push(step.idempotencyKey) + tally.add('second a'))
      await ctx.sleep('1h')
      return keys
    })
    const first = ended(new Engine({ store: home.connect(), definitions: [body], logger }))
    await first.launch()
    await first.start(body, undefined, { id: 'b' })
    await clock.advance('90m')
    await first.shutdown()
    const second = ended(new Engine({ store: home.connect(), definitions: [body], logger }))
    await second.launch()
    await clock.advance('1h')
    // Nothing ran in the last pass, so its list of keys stayed empty.
    expect(await second.handle('b').result()).toEqual([])
    expect(tally.all).toEqual({ a: 1, 'second a': 1 })
    expect(
      (await second.runs.steps('b')).map(({ position, kind: verb, name }) => `${position} ${verb} ${name}`),
    ).toEqual(['0 step a', '1 sleep ', '2 now ', '3 step a', '4 sleep '])
  })

  it('B-13 a sleep that ended while nobody lived wakes at the next launch', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const nap = workflow('nap', async (ctx) => {
      const before = await ctx.now()
      await ctx.sleep('1h')
      return (await ctx.now()).getTime() - before.getTime()
    })
    const first = ended(new Engine({ store: home.connect(), definitions: [nap], logger }))
    await first.launch()
    const { id } = await first.start(nap)
    await clock.advance('1m')
    await first.shutdown()
    await clock.advance('1d')
    const second = ended(new Engine({ store: home.connect(), definitions: [nap], logger }))
    await second.launch()
    expect(await second.handle<number>(id).result({ timeout: '5s' })).toBe(86_460_000)
    expect(await second.runs.get(id)).toMatchObject({ attempt: 1, crashes: 0 })
  })

  it('W18 D-28 more crashes than maxRecoveries dead-letter the run; a requeue counts anew', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const tally = new Tally()
    let mended = false
    const killer = workflow('killer', { maxRecoveries: 2 }, async (ctx) => {
      tally.add('run')
      await ctx.step('kill', () => (mended ? undefined : new Promise<void>(() => {})))
      return 'alive'
    })
    for (let round = 1; round <= 3; round += 1) {
      const store = home.connect()
      const engine = ended(new Engine({ store, definitions: [killer], logger }))
      await engine.launch()
      await engine.start(killer, undefined, { id: 'k' })
      await until(() => tally.of('run') === round, `round ${round}`)
      store.die()
      await clock.advance('31s')
      const reaper = ended(new Engine({ store: home.connect(), definitions: [], logger }))
      await reaper.recover()
      expect(await reaper.runs.get('k')).toMatchObject({ crashes: round, status: round < 3 ? 'ENQUEUED' : 'DEAD' })
      await reaper.shutdown()
    }
    const engine = ended(new Engine({ store: home.connect(), definitions: [killer], logger }))
    await engine.launch()
    expect(await refusal(engine.handle('k').result())).toMatchObject({ code: 'RUN_FAILED', kind: 'crashed' })
    expect(tally.of('run')).toBe(3)
    mended = true
    expect(await engine.requeue('k')).toBe(true)
    expect(await engine.handle('k').result()).toBe('alive')
    expect(await engine.runs.get('k')).toMatchObject({ crashes: 0, attempt: 1, epoch: 1 })
  })

  it('D-29 hand-backs, however many, use nothing up', async () => {
    const home = place()
    const tally = new Tally()
    const leave = door()
    const held = workflow('held', { maxRecoveries: 0 }, async (ctx) => {
      tally.add('run')
      await ctx.step('wait', () => leave.opened)
      return 'done'
    })
    for (let round = 1; round <= 5; round += 1) {
      const engine = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
      await engine.launch()
      if (round === 1) await engine.start(held, undefined, { id: 'h' })
      await until(() => tally.of('run') === round, `round ${round}`)
      await engine.shutdown({ timeout: 0 })
    }
    leave.open()
    const engine = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    expect(await engine.runs.get('h')).toMatchObject({ status: 'ENQUEUED', attempt: 0, crashes: 0 })
    await engine.launch()
    expect(await engine.handle('h').result()).toBe('done')
    expect(await engine.runs.get('h')).toMatchObject({ attempt: 1, crashes: 0 })
    const outcomes = (await engine.runs.attempts('h')).map(({ outcome }) => outcome)
    // A claim that is under way when its engine shuts down may take the run once more, and hands it back, too.
    expect(outcomes.length).toBeGreaterThan(5)
    expect(outcomes).toEqual([...Array(outcomes.length - 1).fill('interrupted'), 'succeeded'])
  })

  it('D-03 D-06 W20 engines of one executor id are two: the old one drains, and nothing depends on the name', async () => {
    const home = place()
    const tally = new Tally()
    const leave = door()
    const held = workflow('held', async (ctx) => {
      await ctx.step('wait', async () => {
        tally.add(ctx.runId)
        await leave.opened
      })
    })
    const options = { definitions: [held], executorId: 'web-1', logger } as const
    const old = ended(new Engine({ ...options, store: home.connect() }))
    await old.launch()
    const run = await old.start(held)
    await until(() => tally.of(run.id) === 1)
    const fresh = ended(new Engine({ ...options, store: home.connect() }))
    await fresh.launch()
    const draining = old.shutdown({ timeout: 0 })
    const more = await fresh.start(held)
    await draining
    await until(() => tally.of(run.id) === 2 && tally.of(more.id) === 1)
    const executors = await Promise.all([run.id, more.id].map(async (id) => (await fresh.runs.get(id))?.executor))
    expect(executors[0]).toBe(executors[1])
    expect(executors[0]).toMatch(/^web-1:/)
    leave.open()
    await Promise.all([fresh.handle(run.id).result(), more.result()])
    // Another name takes over as well.
    const renamed = ended(new Engine({ ...options, executorId: 'elsewhere', store: home.connect() }))
    await fresh.shutdown()
    const queued = await renamed.start(held)
    await renamed.launch()
    await queued.result()
  })

  it('D-18 D-22 D-25 a handler longer than its lease keeps it, also while its engine drains', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const tally = new Tally()
    const leave = door()
    const long = workflow('long', async (ctx) => {
      await ctx.step('wait', async () => {
        tally.add('run')
        await leave.opened
      })
      return 'once'
    })
    const one = ended(new Engine({ store: home.connect(), definitions: [long], logger }))
    const two = ended(new Engine({ store: home.connect(), definitions: [long], logger }))
    await Promise.all([one.launch(), two.launch()])
    const run = await one.start(long, undefined, { id: 'l' })
    await until(() => tally.of('run') === 1)
    await clock.advance('2m')
    const closing = one.shutdown({ timeout: '20s' })
    await clock.advance('2m')
    expect(await two.runs.get('l')).toMatchObject({ status: 'PENDING', crashes: 0 })
    const result = run.result()
    leave.open()
    await closing
    expect(await result).toBe('once')
    expect(await two.handle('l').result()).toBe('once')
    expect(tally.all).toEqual({ run: 1 })
  })
})

describe('a frozen engine on sqlite', () => {
  it('D-35 W17 that comes back writes nothing over its successor', async () => {
    const path = freshFile()
    const tally = new Tally()
    const thaw = door()
    const entered = door()
    const log = notebook()
    const order = workflow('order', async (ctx) => {
      const who = await ctx.step('who', async () => {
        if (tally.add('who') > 1) return 'successor'
        entered.open()
        await thaw.opened
        return 'zombie'
      })
      await ctx.step('after', () => tally.add(`after ${who}`))
      return who
    })
    // Frozen: its clock stands still, so it renews nothing and does not know.
    const zombie = ended(
      new Engine({ store: sqlite(path, { clock: new MockClock() }), definitions: [order], logger: log }),
    )
    await zombie.launch()
    await zombie.start(order, undefined, { id: 'z' })
    await entered.opened
    const clock = new MockClock()
    const successor = ended(new Engine({ store: sqlite(path, { clock }), definitions: [order], logger }))
    await successor.launch()
    await clock.advance('31s')
    expect(await successor.handle('z').result()).toBe('successor')
    thaw.open()
    await until(() => log.messages('warn').some((message) => message.startsWith('claim lost')))
    expect(tally.all).toEqual({ who: 2, 'after successor': 1 })
    expect((await successor.runs.steps('z')).map(({ output }) => output)).toEqual(['successor', 1])
  })
})

describe('many orphans on sqlite', () => {
  it('D-08 W17 50,000 of a dead engine: the next is ready at once, and takes them in batches', async () => {
    const clock = new MockClock()
    const path = freshFile()
    const store = sqlite(path, { clock })
    await store.open()
    const total = 50_000
    for (let from = 0; from < total; from += 1_000) {
      const runs = Array.from({ length: 1_000 }, (_, n) => ({
        ...({
          id: `run ${from + n}`,
          definition: 'echo',
          kind: 'workflow',
          queue: null,
          input: '1',
          inputHash: 'h',
        } as const),
        ...{ priority: 0, partitionKey: null, dedup: null, due: null, parentId: null, kv: [] },
        ...{ maxRecoveries: 50, timeoutMs: null },
        claim: { token: `token ${from + n}`, owner: 'dead', leaseMs: 30_000, version: null },
      }))
      await store.commit([{ type: 'enqueue', commandId: `batch ${from}`, runs }])
    }
    await store.close()
    await clock.advance('1m')
    const echo = workflow('echo', async (_ctx, n: number) => n)
    const engine = ended(new Engine({ store: sqlite(path, { clock }), definitions: [echo], logger }))
    const start = performance.now()
    await engine.launch()
    expect(performance.now() - start).toBeLessThan(1_000)
    const run = await engine.start(echo, 2)
    expect(await run.result({ timeout: '5s' })).toBe(2)
    expect(await engine.handle('run 0').result({ timeout: '20s' })).toBe(1)
    await engine.recover()
    const { runs } = await engine.runs.list({ status: ['ENQUEUED', 'PENDING', 'SUCCESS'], limit: 1_000 })
    expect(runs.slice(1).every(({ crashes }) => crashes === 1)).toBe(true)
  }, 60_000)
})
