/** Q29 Q30 Q31: at most one run that has not ended has a deduplication id in a queue. */
import { describe, expect, it } from 'vitest'
import { Client, Engine, QueueDeduplicatedError, queue, type StartOptions, workflow } from '../../../src/index.ts'
import { silent } from '../../../src/observe/log.ts'
import { MockClock } from '../../../src/testing/mock-clock.ts'
import { KINDS } from './places.ts'
import { door, ended, refusal, until } from './support.ts'

const logger = silent
const queues = [queue('emails'), queue('others')]

describe.each(KINDS)('deduplication on $kind', ({ place }) => {
  const welcome = workflow('welcome', async (_ctx, user: number) => user)
  const fails = workflow('fails', async () => {
    throw new Error('no')
  })
  const held = { queue: 'emails', dedupId: 'user-17' } as const

  it("rejects the second, naming the holder, or gives the holder's handle", async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [welcome], queues, logger }))
    const first = await engine.start(welcome, 17, held)
    const error = await refusal(engine.start(welcome, 17, held))
    expect(error).toBeInstanceOf(QueueDeduplicatedError)
    expect(error).toMatchObject({ queue: 'emails', dedupId: 'user-17', holder: first.id })
    expect(error).not.toHaveProperty('runId')
    const existing = await engine.start(welcome, 99, { ...held, dedupPolicy: 'returnExisting' })
    expect([existing.id, existing.newlySubmitted]).toEqual([first.id, false])
    // The scope is the queue.
    expect((await engine.start(welcome, 17, { ...held, queue: 'others' })).newlySubmitted).toBe(true)
    expect((await engine.runs.list()).runs).toHaveLength(2)
  })

  it('looks at the id first', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [welcome], queues, logger }))
    await engine.start(welcome, 17, { ...held, id: 'a' })
    expect((await engine.start(welcome, 17, { ...held, id: 'a' })).newlySubmitted).toBe(false)
    expect(await refusal(engine.start(welcome, 18, { ...held, id: 'a' }))).toMatchObject({ code: 'INPUT_MISMATCH' })
    const other = await engine.start(welcome, 17, { ...held, id: 'b', dedupPolicy: 'returnExisting' })
    expect(other.id).toBe('a')
    expect(await engine.runs.get('b')).toBeUndefined()
  })

  it('twelve contenders from three processes: exactly one is admitted', async () => {
    const home = place()
    const clients = Array.from({ length: 3 }, () => new Client({ store: home.connect(), logger }))
    for (const [round, policy] of (['reject', 'returnExisting'] as const).entries()) {
      const options = { queue: 'emails', dedupId: `round ${round}`, dedupPolicy: policy }
      const ends = await Promise.allSettled(
        Array.from({ length: 12 }, async (_, n) => clients[n % 3]?.start('welcome', n, options)),
      )
      const handles = ends.flatMap((end) => (end.status === 'fulfilled' ? (end.value ?? []) : []))
      const admitted = handles.filter(({ newlySubmitted }) => newlySubmitted)
      expect(admitted).toHaveLength(1)
      expect(new Set(handles.map(({ id }) => id))).toEqual(new Set([admitted[0]?.id]))
      expect(handles).toHaveLength(policy === 'reject' ? 1 : 12)
      for (const end of ends) {
        if (end.status === 'rejected') expect(end.reason).toMatchObject({ holder: admitted[0]?.id })
      }
      expect((await clients[0]?.runs.list())?.runs).toHaveLength(round + 1)
    }
    for (const client of clients) await client.close()
  })

  it('is free when the holder ends, however it ends', async () => {
    const clock = new MockClock()
    const engine = ended(new Engine({ store: place(clock).connect(), definitions: [welcome, fails], queues, logger }))
    await engine.launch()
    const one = await engine.start(welcome, 1, held)
    await one.result()
    const two = await engine.start(fails, undefined, held)
    await refusal(two.result())
    const three = await engine.start(welcome, 3, { ...held, delay: '1h' })
    expect(await refusal(engine.start(welcome, 4, held))).toMatchObject({ holder: three.id })
    expect(await three.cancel()).toBe(true)
    const four = await engine.start(welcome, 4, held)
    expect(await four.result()).toBe(4)
  })

  it('a list with one duplicate starts nothing, or gives the holder where that is asked for', async () => {
    const engine = ended(new Engine({ store: place().connect(), definitions: [welcome], queues, logger }))
    const holder = await engine.start(welcome, 17, held)
    const list = [{ input: 1 }, { input: 2, options: held }, { input: 3 }]
    expect(await refusal(engine.startMany(welcome, list))).toMatchObject({ holder: holder.id })
    expect((await engine.runs.list()).runs).toHaveLength(1)
    const policy = { ...held, dedupPolicy: 'returnExisting' } as const
    const handles = await engine.startMany(welcome, [{ input: 1 }, { input: 2, options: policy }])
    expect(handles.map(({ newlySubmitted }) => newlySubmitted)).toEqual([true, false])
    expect(handles[1]?.id).toBe(holder.id)
    const twin = { queue: 'emails', dedupId: 'twin' } as const
    const twins = (second: StartOptions) => [
      { input: 1, options: twin },
      { input: 2, options: second },
    ]
    expect(await refusal(engine.startMany(welcome, twins(twin)))).toBeInstanceOf(QueueDeduplicatedError)
    expect((await engine.runs.list({ queue: 'emails' })).runs).toHaveLength(1)
    const [one, two] = await engine.startMany(welcome, twins({ ...twin, dedupPolicy: 'returnExisting' }))
    expect([one?.newlySubmitted, two?.newlySubmitted, two?.id]).toEqual([true, false, one?.id])
  })

  it('a requeue is refused while another run has the id', async () => {
    const opened = door()
    const gated = workflow('gated', async () => opened.opened)
    const engine = ended(new Engine({ store: place().connect(), definitions: [fails, gated], queues, logger }))
    await engine.launch()
    const failed = await engine.start(fails, undefined, held)
    await refusal(failed.result())
    const holder = await engine.start(gated, undefined, held)
    const error = await refusal(engine.requeue(failed.id))
    expect(error).toBeInstanceOf(QueueDeduplicatedError)
    expect(error).toMatchObject({ runId: failed.id, queue: 'emails', dedupId: 'user-17', holder: holder.id })
    expect(await failed.status()).toBe('ERROR')
    opened.open()
    await holder.result()
    expect(await engine.requeue(failed.id)).toBe(true)
    await until(async () => (await failed.status()) === 'ERROR')
  })
})
