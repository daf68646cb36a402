/** How runs come to be, and where they run: ids, names, direct starts, engines without launch or without definition. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Engine, InputMismatchError, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, Tally, until } from './support.ts'

const logger = silent

describe.each(KINDS)('start on $kind', ({ place }) => {
  const tally = new Tally()
  const double = workflow('double', async (ctx, n: number) => {
    tally.add(ctx.runId)
    return ctx.step('double', () => n * 2)
  })
  const other = workflow('other', async (_ctx, n: number) => n)

  it('starts by definition and by name, and tells who started the run', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [double], logger }))
    await engine.launch()
    const run = await engine.start(double, 4)
    expect(run.newlySubmitted).toBe(true)
    expect(run.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    expect(await run.result()).toBe(8)
    expect(await (await engine.start('double', 5)).result()).toBe(10)
    expect(tally.of(run.id)).toBe(1)
  })

  it('launch is idempotent, and works once however often it is called', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [double], logger }))
    await Promise.all([engine.launch(), engine.launch(), engine.launch()])
    await engine.launch()
    expect(store.calls('registerProcess')).toBe(1)
    expect(await (await engine.start(double, 1)).result()).toBe(2)
  })

  it('W14 W15 an id that exists gives the same run: live, ended, and after a restart', async () => {
    const home = place()
    const opened = door()
    const gated = workflow('gated', async (ctx, n: number) => {
      tally.add(`gated ${ctx.runId}`)
      return ctx.step('wait', async () => {
        await opened.opened
        return n
      })
    })
    const engine = ended(new Engine({ store: home.connect(), definitions: [gated, other], logger }))
    await engine.launch()
    const first = await engine.start(gated, 7, { id: 'same' })
    const second = await engine.start(gated, 7, { id: 'same' })
    expect([first.newlySubmitted, second.newlySubmitted]).toEqual([true, false])
    const results = Promise.all([
      first.result(),
      first.result(),
      second.result(),
      engine.handle(gated, 'same').result(),
    ])
    opened.open()
    expect(await results).toEqual([7, 7, 7, 7])
    const third = await engine.start(gated, 7, { id: 'same' })
    expect(third.newlySubmitted).toBe(false)
    expect(await third.result()).toBe(7)
    expect(await refusal(engine.start(gated, 8, { id: 'same' }))).toBeInstanceOf(InputMismatchError)
    await engine.shutdown()

    const later = ended(new Engine({ store: home.connect(), definitions: [gated, other], logger }))
    const mismatch = await refusal(later.start(gated, 8, { id: 'same' }))
    expect(mismatch).toMatchObject({ code: 'INPUT_MISMATCH', runId: 'same', definition: 'gated' })
    expect(await refusal(later.start(other, 7, { id: 'same' }))).toMatchObject({ existingDefinition: 'gated' })
    expect((await later.start(gated, 7, { id: 'same' })).newlySubmitted).toBe(false)
    expect(await later.handle(gated, 'same').result()).toBe(7)
    expect(tally.of('gated same')).toBe(1)
  })

  it('the order of keys makes no other input, anything else does', async () => {
    const keep = workflow('keep', async (_ctx, input: Record<string, unknown>) => input)
    const engine = ended(new Engine({ store: place().connect(), definitions: [keep], logger }))
    await engine.start(keep, { a: 1, b: { c: 2, d: [3] } }, { id: 'k' })
    expect((await engine.start(keep, { b: { d: [3], c: 2 }, a: 1 }, { id: 'k' })).newlySubmitted).toBe(false)
    for (const input of [{ a: 1 }, { a: 1, b: { c: 2, d: [3] }, e: undefined }, { a: 1, b: { c: 2, d: ['3'] } }]) {
      expect(await refusal(engine.start(keep, input, { id: 'k' }))).toBeInstanceOf(InputMismatchError)
    }
  })

  it('fifty starts of one id at once make one run', async () => {
    const home = place()
    const engines = [1, 2].map(() => ended(new Engine({ store: home.connect(), definitions: [double], logger })))
    for (const engine of engines) await engine.launch()
    const handles = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => engines[n % 2]?.start(double, 3, { id: 'one of fifty' })),
    )
    expect(handles.filter((handle) => handle?.newlySubmitted === true)).toHaveLength(1)
    for (const handle of handles) expect(await handle?.result()).toBe(6)
    expect(tally.of('one of fifty')).toBe(1)
    expect((await engines[0]?.runs.list())?.runs).toHaveLength(1)
  })

  it('a start before launch is stored, and run by whatever engine has the definition', async () => {
    const home = place()
    const client = ended(new Engine({ store: home.connect(), definitions: [double, other], logger }))
    const run = await client.start(double, 21, { id: 'early' })
    expect(await run.status()).toBe('ENQUEUED')
    const stranger = ended(new Engine({ store: home.connect(), definitions: [other], logger }))
    await stranger.launch()
    // The stranger has had its look at the queue when it has run something that came later.
    expect(await (await stranger.start(other, 1)).result()).toBe(1)
    const later = await client.start(other, 2)
    expect(await later.result()).toBe(2)
    expect(await run.status()).toBe('ENQUEUED')
    const worker = ended(new Engine({ store: home.connect(), definitions: [double], logger }))
    await worker.launch()
    expect(await run.result()).toBe(42)
    expect(tally.of('early')).toBe(1)
  })

  it('an engine runs, after its launch, what it started before', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [double], logger }))
    const runs = await engine.startMany(double, [{ input: 1 }, { input: 2 }])
    await engine.launch()
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([2, 4])
  })

  it('a direct start is claimed in the commit that records it', async () => {
    const store = place().connect()
    const opened = door()
    const gated = workflow('gated', async () => opened.opened)
    const engine = ended(new Engine({ store, definitions: [gated], logger }))
    await engine.launch()
    const run = await engine.start(gated)
    expect(await run.status()).toBe('PENDING')
    expect(store.commands.filter(({ type }) => type === 'enqueue')).toMatchObject([{ runs: [{ claim: {} }] }])
    opened.open()
    await run.result()
  })

  it('maxConcurrent bounds what runs; the overflow is enqueued and run in order', async () => {
    let running = 0
    let most = 0
    const order: number[] = []
    const counted = workflow('counted', async (ctx, n: number) => {
      running += 1
      most = Math.max(most, running)
      order.push(n)
      await ctx.step('work', async () => {})
      await ctx.step('more', async () => {})
      running -= 1
      return n
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [counted], maxConcurrent: 3, logger }))
    await engine.launch()
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    const runs = await Promise.all(numbers.map((n) => engine.start(counted, n)))
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(numbers)
    expect(most).toBe(3)
    // Those that were enqueued come in the order in which they were accepted.
    expect(order.slice(3)).toEqual([...order.slice(3)].sort((a, b) => a - b))
  })

  it('sleeping runs hold no slot', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', async (ctx, n: number) => {
      await ctx.sleep('1h')
      return n
    })
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], maxConcurrent: 2, logger }))
    await engine.launch()
    const runs = await Promise.all(Array.from({ length: 10 }, (_, n) => engine.start(nap, n)))
    await clock.advance('30m')
    for (const run of runs) expect(await run.status()).toBe('WAITING')
    await clock.advance('1h')
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('an engine with few slots and nothing to do is at rest', async () => {
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [double], maxConcurrent: 2, logger }))
    await engine.launch()
    await (await engine.start(double, 1)).result()
    const claims = store.calls('claim')
    for (let turn = 0; turn < 500; turn += 1) await setImmediate()
    expect(store.calls('claim') - claims).toBeLessThan(5)
  })

  it('startMany is all or nothing, in order, with an id given twice', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [double, other], logger }))
    await engine.launch()
    const runs = await engine.startMany(double, [
      { input: 1, options: { id: 'x' } },
      { input: 1, options: { id: 'x' } },
      { input: 2 },
    ])
    expect(runs.map(({ newlySubmitted }) => newlySubmitted)).toEqual([true, false, true])
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([2, 2, 4])
    expect(tally.of('x')).toBe(1)
    expect(await engine.startMany(double, [])).toEqual([])

    const before = (await engine.runs.list()).runs.length
    const mixed = [
      { input: 3, options: { id: 'new' } },
      { input: 9, options: { id: 'x' } },
    ]
    expect(await refusal(engine.startMany(double, mixed))).toMatchObject({ code: 'INPUT_MISMATCH', runId: 'x' })
    const rivals = [
      { input: 3, options: { id: 'y' } },
      { input: 4, options: { id: 'y' } },
    ]
    expect(await refusal(engine.startMany(double, rivals))).toMatchObject({ code: 'INPUT_MISMATCH', runId: 'y' })
    expect((await engine.runs.list()).runs).toHaveLength(before)
    // The slots that had been reserved for the refused runs are free again.
    expect(await (await engine.start(double, 8)).result()).toBe(16)
  })

  it('refused starts give their slots back', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [double], maxConcurrent: 2, logger }))
    await engine.launch()
    await (await engine.start(double, 1, { id: 'taken' })).result()
    for (let n = 0; n < 20; n += 1) {
      await refusal(engine.start(double, 2, { id: 'taken' }))
      expect((await engine.start(double, 1, { id: 'taken' })).newlySubmitted).toBe(false)
    }
    const run = await engine.start(double, 5)
    expect(await run.result()).toBe(10)
  })

  it('two engines share one store object', async () => {
    const store = place().connect()
    const one = ended(new Engine({ store, definitions: [double], logger }))
    const two = ended(new Engine({ store, definitions: [other], logger }))
    await Promise.all([one.launch(), two.launch()])
    const run = await one.start(double, 2)
    expect(await two.handle<number>(run.id).result()).toBe(4)
    await one.shutdown()
    const rest = await two.start(other, 3)
    expect(await rest.result()).toBe(3)
    await until(async () => (await two.runs.list()).runs.every(({ status }) => status === 'SUCCESS'))
  })

  it('W46 hostile strings in every text input stay data', async () => {
    const hostile = [`'; drop table runs; --`, `" or 1=1`, '$1 ${x} %s \\', '日本語 🙂', '__proto__', 'constructor']
    const echo = workflow(`e'"; --`, async (ctx, text: string) => ctx.step(`s'"`, () => text))
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo], executorId: `x'; --`, logger }))
    await engine.launch()
    for (const text of hostile) {
      const run = await engine.start(echo, text, { id: text })
      expect(await run.result()).toBe(text)
      expect(await engine.runs.get(text)).toMatchObject({ id: text, input: text, output: text })
      expect(await engine.runs.steps(text)).toMatchObject([{ name: `s'"`, output: text }])
    }
    expect((await engine.runs.list({ definition: `e'"; --` })).runs).toHaveLength(hostile.length)
    expect((await engine.runs.list({ definition: `' or ''='` })).runs).toHaveLength(0)
  })
})
