/** B-01: instants beyond the reach of a native timer, on the host's clock. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Engine, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, until } from './support.ts'

const logger = silent
const DURATIONS = ['30d', 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, '100y', Number.MAX_SAFE_INTEGER, 86_400_000.5] as const

describe.each(KINDS)('long timers on $kind', ({ place }) => {
  it('B-01 sleeps, timeouts and waits of 30 days and around 2**31 ms neither warn, spin nor end', async () => {
    const warnings: Error[] = []
    const warn = (warning: Error): void => void warnings.push(warning)
    process.on('warning', warn)
    onTestFinished(() => void process.off('warning', warn))
    const opened = door()
    const nap = workflow('nap', async (ctx, duration: number | string) => {
      await ctx.sleep(duration)
    })
    const awake = workflow('awake', async (ctx, duration: number | string) => {
      await Promise.race([ctx.sleep(duration), ctx.step('hold', () => opened.opened)])
      return 'held'
    })
    const store = place().connect()
    const engine = ended(new Engine({ store, definitions: [nap, awake], maxBlocked: '60d', logger }))
    await engine.launch()
    const naps = await Promise.all(DURATIONS.map((duration) => engine.start(nap, duration, { timeout: duration })))
    const held = await Promise.all(DURATIONS.map((duration) => engine.start(awake, duration, { timeout: duration })))
    const waits = naps.map((run) => refusal(run.result({ timeout: '30d' })))
    await until(async () => (await engine.runs.list({ status: 'WAITING' })).runs.length === DURATIONS.length)
    const calls = store.calls('claim') + store.calls('commit')
    for (let turn = 0; turn < 300; turn += 1) await setImmediate()
    expect(store.calls('claim') + store.calls('commit') - calls).toBeLessThan(6)
    expect(await Promise.all(held.map((run) => run.status()))).toEqual(held.map(() => 'PENDING'))
    opened.open()
    expect(await Promise.all(held.map((run) => run.result()))).toEqual(held.map(() => 'held'))
    for (const run of naps) expect(await run.cancel()).toBe(true)
    for (const wait of waits) expect(await wait).toMatchObject({ code: 'RUN_CANCELLED' })
    expect(warnings).toEqual([])
  })

  it('B-01 a sleep of 30 days is over after 30 days', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', async (ctx, duration: number | string) => ctx.sleep(duration))
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    await engine.launch()
    const month = await engine.start(nap, '30d')
    const fraction = await engine.start(nap, 5_000.5)
    await clock.advance('29d')
    expect([await month.status(), await fraction.status()]).toEqual(['WAITING', 'SUCCESS'])
    await clock.advance('1d')
    expect(await month.status()).toBe('SUCCESS')
  })
})
