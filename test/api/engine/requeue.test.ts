/** What a requeue keeps and what it runs again, and what `engine.runs` tells of it. */
import { describe, expect, it } from 'vitest'
import { Engine, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { ended, refusal, Tally } from './support.ts'

const logger = silent

describe.each(KINDS)('requeue and runs on $kind', ({ place }) => {
  it('successes before the first failure stay, the failure and what followed run again', async () => {
    const tally = new Tally()
    let mended = false
    const order = workflow('order', async (ctx) => {
      await ctx.step('reserve', () => tally.add('reserve'))
      const charged = await ctx
        .step('charge', () => {
          tally.add('charge')
          if (!mended) throw new Error('declined')
          return 'charged'
        })
        .catch(() => 'declined')
      await ctx.step('notify', () => tally.add('notify'))
      if (charged === 'declined') throw new Error('no money')
      return charged
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [order], logger }))
    await engine.launch()
    const run = await engine.start(order, undefined, { id: 'o' })
    await refusal(run.result())
    expect(await engine.runs.steps('o')).toMatchObject([
      { position: 0, kind: 'step', name: 'reserve', status: 'SUCCESS', output: 1, attempts: 1 },
      { position: 1, name: 'charge', status: 'ERROR', error: { message: 'declined' } },
      { position: 2, name: 'notify', status: 'SUCCESS' },
    ])
    mended = true
    expect(await engine.requeue('o')).toBe(true)
    expect(await run.result()).toBe('charged')
    expect(tally.all).toEqual({ reserve: 1, charge: 2, notify: 2 })
    expect(await engine.runs.get('o')).toMatchObject({
      status: 'SUCCESS',
      epoch: 1,
      attempt: 1,
      crashes: 0,
      output: 'charged',
    })
    expect(await engine.runs.attempts('o')).toMatchObject([
      { epoch: 0, attempt: 1, outcome: 'failed', failureKind: 'error' },
      { epoch: 0, outcome: 'requeued' },
      { epoch: 1, attempt: 1, outcome: 'succeeded' },
    ])
    expect(await engine.requeue('o')).toBe(false)
  })

  it('is for ERROR, DEAD and CANCELLED only', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', async (ctx) => ctx.sleep('1h'))
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    const run = await engine.start(nap)
    expect(await engine.requeue(run.id)).toBe(false)
    await run.cancel()
    expect(await engine.requeue(run.id)).toBe(true)
    expect(await run.status()).toBe('ENQUEUED')
    await engine.launch()
    await clock.advance('1m')
    expect(await run.status()).toBe('WAITING')
    expect(await engine.requeue(run.id)).toBe(false)
    await clock.advance('1h')
    await run.result()
    expect(await engine.requeue(run.id)).toBe(false)
    expect((await engine.runs.attempts(run.id)).map(({ outcome }) => outcome)).toEqual(['requeued', 'succeeded'])
  })

  it('a DEAD run of an input that its schema refuses can be requeued after a fix', async () => {
    const home = place()
    const before = workflow('typed', async (_ctx, n: number) => n)
    const writer = ended(new Engine({ store: home.connect(), definitions: [before], logger }))
    const run = await writer.start(before, 5)
    let strict = true
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => (strict ? { issues: [{ message: 'too strict' }] } : { value }),
      },
    }
    const after = workflow('typed', { input: schema }, async (_ctx, n) => n)
    const engine = ended(new Engine({ store: home.connect(), definitions: [after], logger }))
    await engine.launch()
    expect(await refusal(engine.handle(run.id).result())).toMatchObject({
      kind: 'permanent',
      cause: { code: 'VALIDATION' },
    })
    expect(await engine.handle(run.id).status()).toBe('DEAD')
    strict = false
    expect(await engine.requeue(run.id)).toBe(true)
    expect(await engine.handle(run.id).result()).toBe(5)
  })

  it('lists newest first, in pages, by status and definition', async () => {
    const echo = workflow('echo', async (_ctx, n: number) => n)
    const fail = workflow('fail', async () => {
      throw new Error('no')
    })
    const engine = ended(new Engine({ store: place().connect(), definitions: [echo, fail], logger }))
    await engine.launch()
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1) {
      const run = n % 3 === 0 ? await engine.start(fail) : await engine.start(echo, n)
      await run.result().catch(() => {})
      ids.unshift(run.id)
    }
    expect((await engine.runs.list()).runs.map(({ id }) => id)).toEqual(ids)
    const pages: string[][] = []
    let cursor: string | undefined
    do {
      const page = await engine.runs.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) })
      pages.push(page.runs.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(pages).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)])
    expect((await engine.runs.list({ limit: 7 })).cursor).toBeUndefined()
    expect((await engine.runs.list({ status: 'ERROR' })).runs).toHaveLength(3)
    expect((await engine.runs.list({ status: ['ERROR', 'SUCCESS'], definition: 'echo' })).runs).toHaveLength(4)
    expect((await engine.runs.list({ status: [] })).runs).toHaveLength(0)
    expect((await engine.runs.list({ definition: 'nobody' })).runs).toHaveLength(0)
  })

  it('A-03 every field is of its declared type', async () => {
    const clock = new MockClock()
    const nap = workflow('nap', { timeout: '1d' }, async (ctx) => {
      await ctx.step('s', () => 1)
      await ctx.sleep('1h')
    })
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [nap], logger }))
    await engine.launch()
    const { id } = await engine.start(nap)
    await clock.advance('1m')
    const waiting = await engine.runs.get(id)
    for (const field of ['attempt', 'crashes', 'epoch'] as const) expect(typeof waiting?.[field]).toBe('number')
    for (const field of ['createdAt', 'startedAt', 'wakeAt', 'deadline'] as const)
      expect(waiting?.[field]).toBeInstanceOf(Date)
    expect(waiting?.cancelRequested).toBe(false)
    expect([waiting?.endedAt, waiting?.runAt]).toEqual([undefined, undefined])
    expect(waiting?.wakeAt?.getTime()).toBe((waiting?.createdAt.getTime() ?? 0) + 3_600_000)
    const [step, sleep] = await engine.runs.steps(id)
    expect([typeof step?.position, typeof step?.attempts, step?.recordedAt instanceof Date]).toEqual([
      'number',
      'number',
      true,
    ])
    expect(sleep).toMatchObject({ kind: 'sleep', name: '', status: 'WAITING', wakeAt: waiting?.wakeAt })
    await clock.advance('1h')
    const done = await engine.runs.get(id)
    expect(done?.endedAt).toBeInstanceOf(Date)
    expect(done?.wakeAt).toBeUndefined()
    const [attempt] = await engine.runs.attempts(id)
    expect([typeof attempt?.epoch, typeof attempt?.attempt, attempt?.startedAt instanceof Date]).toEqual([
      'number',
      'number',
      true,
    ])
  })
})
