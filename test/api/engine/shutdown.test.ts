/** Launch and shutdown in every interleaving: what runs is drained or handed back, and nothing is left. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Engine, EngineShutdownError, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, Tally, until } from './support.ts'

const logger = silent

describe.each(KINDS)('shutdown on $kind', ({ kind, place }) => {
  const echo = workflow('echo', async (ctx, n: number) => ctx.step('echo', () => n))

  it('W22 waits for what runs, recovered runs included', async () => {
    const home = place()
    const tally = new Tally()
    const leave = door()
    const held = workflow('held', async (ctx) => {
      await ctx.step('wait', async () => {
        tally.add(ctx.runId)
        await leave.opened
      })
      return ctx.step('after', () => 'after')
    })
    const first = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    const recovered = await first.start(held)
    const engine = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    await engine.launch()
    const direct = await engine.start(held)
    await until(() => tally.of(recovered.id) + tally.of(direct.id) === 2)
    const closing = engine.shutdown({ timeout: '20s' })
    leave.open()
    await closing
    for (const { id } of [recovered, direct])
      expect(await first.runs.get(id)).toMatchObject({ status: 'SUCCESS', output: 'after' })
  })

  it('F-06 hands the rest back at once; a step that ends meanwhile is recorded first', async () => {
    const home = place()
    const tally = new Tally()
    const leave = door()
    const held = workflow('held', async (ctx) => {
      await ctx.step('first', () => tally.add('first'))
      await ctx.step('wait', async ({ signal }) => {
        if (tally.add('wait') > 1) return
        await leave.opened
        tally.add(signal.aborted ? 'was aborted' : 'was not aborted')
      })
      return 'done'
    })
    const engine = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    await engine.launch()
    const run = await engine.start(held, undefined, { id: 'h' })
    await until(() => tally.of('wait') === 1)
    const result = run.result()
    result.catch(() => {})
    await engine.shutdown({ timeout: 0 })
    leave.open()
    const heir = ended(new Engine({ store: home.connect(), definitions: [held], logger }))
    expect(await heir.runs.get('h')).toMatchObject({ status: 'ENQUEUED', attempt: 0, crashes: 0 })
    await heir.launch()
    expect(await heir.handle('h').result()).toBe('done')
    await until(() => tally.of('was aborted') === 1)
    expect(tally.all).toEqual({ first: 1, wait: 2, 'was aborted': 1 })
  })

  it('calls after a shutdown are refused, and awaited results settle', async () => {
    const leave = door()
    const held = workflow('held', async (ctx) => ctx.step('wait', () => leave.opened))
    const engine = new Engine({ store: place().connect(), definitions: [held], logger })
    await engine.launch()
    const run = await engine.start(held)
    const result = refusal(run.result())
    await engine.shutdown({ timeout: 0 })
    expect(await result).toMatchObject({ code: 'STORE_CLOSED' })
    for (const call of [
      () => engine.launch(),
      () => engine.start(held),
      () => engine.startMany(held, []),
      () => engine.cancel(run.id),
      () => engine.requeue(run.id),
      () => engine.recover(),
      () => engine.runs.get(run.id),
      () => engine.runs.list(),
      () => run.result(),
      () => run.status(),
      () => run.cancel(),
      () => run.fetchResult(),
    ]) {
      expect(await refusal(call())).toBeInstanceOf(EngineShutdownError)
    }
    await engine.shutdown()
    leave.open()
  })

  it('an engine that was never used shuts down; disposal is a shutdown', async () => {
    await new Engine({ store: place().connect(), definitions: [echo], logger }).shutdown()
    const engine = new Engine({ store: place().connect(), definitions: [echo], logger })
    await engine.launch()
    await engine[Symbol.asyncDispose]()
    expect(await refusal(engine.start(echo, 1))).toBeInstanceOf(EngineShutdownError)
  })

  it('F-04 launch and shutdown settle in any interleaving, 100 times', async () => {
    const home = place()
    for (let round = 0; round < 100; round += 1) {
      const engine = new Engine({ store: home.connect(), definitions: [echo], logger })
      const launches = [engine.launch(), engine.launch()].map((launch) => launch.catch((error: unknown) => error))
      for (let turn = 0; turn < round % 10; turn += 1) await setImmediate()
      const shutdowns = [engine.shutdown(), engine.shutdown({ timeout: 0 })]
      await Promise.all(shutdowns)
      for (const end of await Promise.all(launches)) {
        if (end !== undefined) expect(end).toBeInstanceOf(EngineShutdownError)
      }
    }
    const last = ended(new Engine({ store: home.connect(), definitions: [echo], logger }))
    await last.launch()
    expect(await (await last.start(echo, 1)).result()).toBe(1)
  })

  it('D-27 starts race shutdowns: an accepted run is run or handed back, each step once', async () => {
    const home = place()
    const tally = new Tally()
    const two = workflow('two', async (ctx) => {
      await ctx.step('a', () => tally.add(`${ctx.runId} a`))
      await ctx.step('b', () => tally.add(`${ctx.runId} b`))
    })
    const accepted: string[] = []
    const rounds = { memory: 400, sqlite: 100, postgres: 12 }[kind]
    for (let round = 0; round < rounds; round += 1) {
      const engine = new Engine({ store: home.connect(), definitions: [two], logger })
      await engine.launch()
      const starts = Array.from({ length: 5 }, async (_, n) => {
        for (let turn = 0; turn < n; turn += 1) await setImmediate()
        const run = await engine.start(two)
        accepted.push(run.id)
      })
      const settled = Promise.allSettled(starts)
      for (let turn = 0; turn < round % 13; turn += 1) await setImmediate()
      await engine.shutdown({ timeout: round % 2 === 0 ? 0 : 5_000 })
      for (const end of await settled)
        if (end.status === 'rejected') expect(end.reason).toBeInstanceOf(EngineShutdownError)
    }
    const last = ended(new Engine({ store: home.connect(), definitions: [two], logger }))
    await last.launch()
    await Promise.all(accepted.map((id) => last.handle(id).result({ timeout: '10s' })))
    for (const id of accepted)
      expect([await last.runs.get(id)]).toMatchObject([{ status: 'SUCCESS', crashes: 0, attempt: 1 }])
    // A step that had run when its run was handed back, unrecorded, runs again; no more than that.
    for (const count of Object.values(tally.all)) expect(count).toBeLessThanOrEqual(2)
    expect(accepted.length).toBeGreaterThan(rounds)
  }, 60_000)

  it('sleeping runs hold nothing up, and are not touched', async () => {
    const clock = new MockClock()
    const home = place(clock)
    const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))
    const engine = new Engine({ store: home.connect(), definitions: [nap], logger })
    await engine.launch()
    const { id } = await engine.start(nap)
    await clock.advance('1m')
    const start = performance.now()
    await engine.shutdown()
    expect(performance.now() - start).toBeLessThan(5_000)
    const other = ended(new Engine({ store: home.connect(), definitions: [nap], logger }))
    expect(await other.runs.get(id)).toMatchObject({ status: 'WAITING', attempt: 1 })
  })
})
