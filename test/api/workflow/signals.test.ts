/** Signals, through engines: sent, buffered, raced, and delivered once whatever happens around them. */
import { expect, it } from 'vitest'
import { Engine, SignalKeyTakenError, type SignalResult, type Store, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { memory } from '../../../src/store/memory/index.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from '../engine/places.ts'
import { ended, refusal, until } from '../engine/support.ts'

const approval = workflow('approval', async (ctx, key: string) => {
  const answer = await ctx.waitForSignal<string>(key, { timeout: '3d' })
  await ctx.step('note', () => {})
  return answer.ok ? answer.payload : 'nobody answered'
})

async function launched(store: Store): Promise<Engine> {
  const engine = ended(new Engine({ store, definitions: [approval], logger: silent }))
  await engine.launch()
  return engine
}

it.each(KINDS)('$kind: W33: is suspended, holds nothing, and goes on with the signal', async ({ place }) => {
  const clock = new MockClock()
  const engine = await launched(place(clock).connect())
  const run = await engine.start(approval, 'key')
  await clock.advance('1h')
  expect(await run.status()).toBe('WAITING')
  expect(await engine.sendSignal('key', 'yes')).toBe('delivered')
  await clock.advance(0)
  expect([await run.status(), await run.result()]).toEqual(['SUCCESS', 'yes'])
})

it.each(KINDS)(
  '$kind: W33: a signal that comes first is kept, the newest, and taken by the first wait',
  async ({ place }) => {
    const clock = new MockClock()
    const engine = await launched(place(clock).connect())
    expect([await engine.sendSignal('key', 'old'), await engine.sendSignal('key', 'new')]).toEqual([
      'buffered',
      'replaced',
    ])
    expect(await (await engine.start(approval, 'key')).result()).toBe('new')
    const second = await engine.start(approval, 'key')
    await clock.advance('3d')
    expect(await second.result()).toBe('nobody answered')
  },
)

it.each(KINDS)('$kind: the time-out counts from the call, across engines', async ({ place }) => {
  const clock = new MockClock()
  const home = place(clock)
  const first = await launched(home.connect())
  const run = await first.start(approval, 'key')
  await clock.advance('2d')
  await first.shutdown({ timeout: 0 })
  const second = await launched(home.connect())
  await clock.advance('23h')
  const again = second.handle(approval, run.id)
  expect(await again.status()).toBe('WAITING')
  await clock.advance('1h')
  expect(await again.result()).toBe('nobody answered')
  expect(await second.sendSignal('key')).toBe('buffered')
})

/** The store, with something to be done before or after the n-th of its commits and claims. */
function interrupted(store: Store, n: number, when: 'before' | 'after', act: () => Promise<unknown>): Store {
  let calls = 0
  const around = async <T>(call: () => Promise<T>): Promise<T> => {
    calls += 1
    const mine = calls === n
    if (mine && when === 'before') await act()
    const answer = await call()
    if (mine && when === 'after') await act()
    return answer
  }
  const seam: Partial<Store> = {
    commit: (commands) => around(() => store.commit(commands)),
    claim: (request) => around(() => store.claim(request)),
  }
  return new Proxy(store, {
    get: (_, key) => {
      const own: unknown = Reflect.get(seam, key)
      if (own !== undefined) return own
      const value: unknown = Reflect.get(store, key)
      return typeof value === 'function' ? value.bind(store) : value
    },
  })
}

const twice = workflow('approval', async (ctx) => {
  const first = await ctx.waitForSignal<number>('key', { timeout: '1h' })
  const second = await ctx.waitForSignal<number>('key', { timeout: '1h' })
  return [first, second]
})

it.each(['before', 'after'] as const)(
  'D-31, W33: a signal sent %s every boundary of a suspension is delivered once',
  async (when) => {
    let reached = 0
    for (let boundary = 1; boundary <= 24; boundary += 1) {
      const clock = new MockClock()
      const store = memory({ clock })
      const outside = ended(new Engine({ store, definitions: [twice], logger: silent }))
      let sent: string | undefined
      const seam = interrupted(store, boundary, when, async () => {
        sent = await outside.sendSignal('key', boundary)
      })
      const engine = ended(new Engine({ store: seam, definitions: [twice], logger: silent }))
      await engine.launch()
      const run = await engine.start(twice)
      await clock.advance('3h')
      const results: readonly SignalResult<number>[] = await run.result()
      if (sent === undefined) continue
      reached += 1
      const heard = results.filter(({ ok }) => ok)
      const left = (await outside.sendSignal('key')) === 'replaced'
      // Delivered to one of the waits, or still there after the run has ended: never both, never neither.
      expect([boundary, heard.length + Number(left)]).toEqual([boundary, 1])
      for (const result of heard) expect(result).toEqual({ ok: true, payload: boundary })
    }
    expect(reached).toBeGreaterThan(10)
  },
)

it('100 signals that race the time-out on a real clock: delivered, or kept, never both', async () => {
  const brief = workflow('brief', async (ctx, key: string) => ctx.waitForSignal(key, { timeout: 15 }))
  const engine = ended(new Engine({ store: memory(), definitions: [brief], logger: silent }))
  await engine.launch()
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const run = await engine.start(brief, `key ${index}`)
      await new Promise((resolve) => setTimeout(resolve, 10 + (index % 11)))
      const sent = await engine.sendSignal(`key ${index}`, index)
      const result = await run.result()
      return [sent, result.ok]
    }),
  )
  for (const [sent, ok] of outcomes)
    expect([
      ['delivered', true],
      ['buffered', false],
    ]).toContainEqual([sent, ok])
})

it.each(KINDS)("$kind: W33: a wait on another run's key is refused, until that run has ended", async ({ place }) => {
  const clock = new MockClock()
  const engine = await launched(place(clock).connect())
  const holder = await engine.start(approval, 'key', { id: 'holder' })
  await clock.advance(1)
  const second = await engine.start(approval, 'key', { id: 'second' })
  expect(await refusal(second.result())).toMatchObject({
    cause: expect.any(SignalKeyTakenError),
    kind: 'error',
  })
  expect(await holder.cancel()).toBe(true)
  expect(await engine.sendSignal('key', 'for the next')).toBe('buffered')
  expect(await (await engine.start(approval, 'key')).result()).toBe('for the next')
})

it.each(KINDS)('$kind: W33: survives the end of its engine', async ({ place }) => {
  const home = place()
  const first = await launched(home.connect())
  const run = await first.start(approval, 'key')
  await until(async () => (await run.status()) === 'WAITING')
  await first.shutdown({ timeout: 0 })
  const second = await launched(home.connect())
  expect(await second.sendSignal('key', { deep: new Map([[1, 2n]]) })).toBe('delivered')
  expect(await second.handle(run.id).result()).toEqual({ deep: new Map([[1, 2n]]) })
})

it('a requeued run waits anew', async () => {
  const clock = new MockClock()
  const engine = await launched(memory({ clock }))
  const run = await engine.start(approval, 'key')
  await clock.advance('1h')
  expect(await run.cancel()).toBe(true)
  expect(await engine.requeue(run.id)).toBe(true)
  await clock.advance('1h')
  expect(await engine.sendSignal('key', 'after all')).toBe('delivered')
  expect(await run.result()).toBe('after all')
})

it('two workflows play ping-pong', async () => {
  const player = workflow(
    'player',
    async (ctx, { me, other, begins }: { me: string; other: string; begins: boolean }) => {
      const seen: unknown[] = []
      if (begins) await ctx.sendSignal(other, 0)
      for (let round = 0; round < 5; round += 1) {
        const ball = await ctx.waitForSignal<number>(me)
        if (!ball.ok) throw new Error('no time-out was asked for')
        seen.push(ball.payload)
        await ctx.sendSignal(other, ball.payload + 1)
      }
      return seen
    },
  )
  const clock = new MockClock()
  const engine = ended(new Engine({ store: memory({ clock }), definitions: [player], logger: silent }))
  await engine.launch()
  const ping = await engine.start(player, { me: 'ping', other: 'pong', begins: true })
  const pong = await engine.start(player, { me: 'pong', other: 'ping', begins: false })
  expect([await ping.result(), await pong.result()]).toEqual([
    [1, 3, 5, 7, 9],
    [0, 2, 4, 6, 8],
  ])
})
