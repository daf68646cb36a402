/**
 * Limits under races (Q14, P6): whoever claims, with whatever version, and whatever arrives between a count and a
 * claim, no limit is exceeded at any instant. What is counted here is counted outside the store.
 */
import assert from 'node:assert/strict'
import type { ClaimedRun, Command, NewRun, Store } from '../contract.ts'
import { at, HANDLES, handles, one, patiently } from './handles.ts'
import { LEASE_MS, newRun, numbered, RELEASE, SUCCEED, suspendUntil } from './makers.ts'
import { type ClaimFields, claimRequest, from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'

const MEDIA: ClaimFields = { sources: [from('media')] }

export function limitRaces(test: Test): void {
  alternating(test)
  globalLimits(test)
  rates(test)
  lanes(test)
  deduplication(test)
}

/** Claims with three fresh tokens. */
async function claim(world: World, store: Store, fields: ClaimFields = MEDIA): Promise<readonly ClaimedRun[]> {
  const round = world.commandId()
  const request = claimRequest(
    [1, 2, 3].map((n) => `${round} ${n}`),
    { owner: `worker ${round}`, ...fields },
  )
  return (await patiently(() => store.claim(request))).runs
}

function settle(world: World, store: Store, { run, token }: ClaimedRun, settlement = SUCCEED) {
  return one(world, store, { type: 'settle', runId: run.id, token, entries: [], settlement })
}

function enqueue(world: World, store: Store, ...runs: readonly NewRun[]) {
  return one(world, store, { type: 'enqueue', commandId: world.commandId(), runs })
}

/** How many claims are valid, as their holders see it: between the answer to the claim and the call that settles. */
class Gauge {
  readonly #highest = new Map<string, number>()
  readonly #now = new Map<string, number>()

  enter(lane: string): void {
    const count = (this.#now.get(lane) ?? 0) + 1
    this.#now.set(lane, count)
    this.#highest.set(lane, Math.max(count, this.#highest.get(lane) ?? 0))
  }

  leave(lane: string): void {
    this.#now.set(lane, (this.#now.get(lane) ?? 0) - 1)
  }

  get highest(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#highest)
  }
}

function alternating(test: Test): void {
  test('two stores that claim by turns share every limit', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 3, rateLimit: { limit: 5, periodMs: 1_000 } })
    await world.enqueue(...runsOf('media', numbered('run', 20)))
    const held: ClaimedRun[] = []
    const started: number[] = []
    const begun = world.clock.now()
    for (let n = 0; n < 60; n++) {
      const claimed = await claim(world, at(stores, n))
      held.push(...claimed)
      started.push(...claimed.map(() => world.clock.now() - begun))
      assert.ok(held.length <= 3, `turn ${n}`)
      if (n % 2 === 1) {
        const [oldest] = held.splice(0, 1)
        if (oldest !== undefined) await settle(world, at(stores, n + 1), oldest)
        world.clock.pass(100)
      }
    }
    for (const [n, instant] of started.entries()) {
      assert.ok(instant - (started[n - 5] ?? Number.NEGATIVE_INFINITY) >= 1_000, `start ${n}`)
    }
    assert.ok(started.length >= 13, 'and the limits let through what they may')
  })

  test('a limit that one store changes holds for the next claim of another', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 1 })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c', 'd']))
    assert.equal((await claim(world, at(stores, 1))).length, 1)
    await at(stores, 2).changeQueue('media', { globalConcurrency: 2 })
    assert.equal((await claim(world, at(stores, 1))).length, 1)
    await at(stores, 3).changeQueue('media', { paused: true, globalConcurrency: 9 })
    assert.equal((await claim(world, at(stores, 1))).length, 0)
    await at(stores, 3).registerQueues([{ ...(await world.register('media')), configVersion: 1 }])
    await at(stores, 3).changeQueue('media', { paused: false })
    assert.equal((await claim(world, at(stores, 1))).length, 2)
  })
}

function globalLimits(test: Test): void {
  test('executors of different versions, whose candidates never overlap (Q14b)', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 2 })
    const ids = numbered('run', 12)
    await world.enqueue(...runsOf('media', ids))
    const versions = ['v1', 'v2', 'v3']
    await world.configure('media', { globalConcurrency: null })
    for (const version of versions) {
      for (const claimed of await claim(world, world.store, { ...MEDIA, version })) {
        await settle(world, world.store, claimed, { type: 'release' })
      }
    }
    await world.configure('media', { globalConcurrency: 2 })
    const claims = Array.from({ length: 12 }, (_, n) =>
      claim(world, at(stores, n), { ...MEDIA, version: versions[n % 3] ?? null }),
    )
    assert.equal((await Promise.all(claims)).flat().length, 2)
  })

  test('more urgent runs that arrive between the count and the claim (Q14c)', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 2, priorityEnabled: true })
    await world.enqueue(...runsOf('media', ['a', 'b', 'c', 'd'], { priority: 100 }))
    const racing = Array.from({ length: 20 }, async (_, n) => {
      if (n % 2 === 0) return claim(world, at(stores, n / 2))
      await enqueue(world, at(stores, n), ...runsOf('media', [`urgent ${n}`], { priority: -n }))
      return claim(world, at(stores, n))
    })
    assert.equal((await Promise.all(racing)).flat().length, 2)
  })

  test('claims, ends, hand-backs, suspensions and crashes at once: never above, and all get through (Q14d)', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 3 })
    const ids = numbered('run', 60)
    await world.enqueue(...runsOf('media', ids))
    const gauge = new Gauge()
    const ended: string[] = []
    const finish = async (store: Store, claimed: ClaimedRun): Promise<void> => {
      gauge.enter('')
      // A few turns in which others claim.
      for (let turn = 0; turn < 3; turn++) await patiently(() => store.runs([claimed.run.id]))
      // One that is suspended or handed back is counted again by whoever claims it next.
      gauge.leave('')
      const isLast = claimed.run.deliveries > 1
      const unfinished = claimed.run.seq % 3 === 0 ? suspendUntil(0) : RELEASE
      await settle(world, store, claimed, isLast ? SUCCEED : unfinished)
      if (isLast) ended.push(claimed.run.id)
    }
    const work = async (worker: number): Promise<void> => {
      for (let n = 0; ended.length < ids.length && n < 1_000; n++) {
        const store = at(stores, worker)
        await Promise.all((await claim(world, store)).map((claimed) => finish(store, claimed)))
      }
    }
    await Promise.all(Array.from({ length: HANDLES }, (_, n) => work(n)))
    assert.deepEqual(ended.toSorted(), ids.toSorted())
    assert.deepEqual(gauge.highest, { '': 3 })
  })

  test('a settle and a reclaim of one claim at once free one turn (C-06)', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 5 })
    await world.enqueue(...runsOf('media', numbered('run', 60)))
    for (let round = 0; round < 5; round++) {
      const held = [...(await claim(world, at(stores, 0))), ...(await claim(world, at(stores, 1)))]
      assert.equal(held.length, 5)
      world.clock.pass(LEASE_MS)
      const settled = held.map((claimed, n) => settle(world, at(stores, n), claimed))
      const reclaimed = [1, 2, 3].map((n) => patiently(() => at(stores, n).reclaim({ deadOwners: [], limit: 10 })))
      await Promise.all([...settled, ...reclaimed])
      const next = await Promise.all([1, 2, 3, 4].map((n) => claim(world, at(stores, n))))
      assert.equal(next.flat().length, 5, `round ${round}`)
      for (const claimed of next.flat()) await settle(world, at(stores, 0), claimed)
    }
  })
}

function rates(test: Test): void {
  test('executors that count together and claim different rows (Q14a, C-01)', async (world) => {
    const stores = await handles(world)
    await world.register('media', { rateLimit: { limit: 5, periodMs: 1_000 } })
    await world.enqueue(...runsOf('media', numbered('run', 40)))
    for (const round of [1, 2, 3]) {
      const claims = Array.from({ length: 8 }, (_, n) => claim(world, at(stores, n)))
      assert.equal((await Promise.all(claims)).flat().length, 5, `round ${round}`)
      world.clock.pass(999)
      assert.equal((await Promise.all([0, 1, 2].map((n) => claim(world, at(stores, n))))).flat().length, 0)
      world.clock.pass(1)
    }
  })
}

function lanes(test: Test): void {
  test('the limit of each lane, and every lane gets through', async (world) => {
    const stores = await handles(world)
    await world.register('media', { globalConcurrency: 1, partitioned: true })
    const keys = ['eu', 'us', 'jp', 'br', 'in']
    const ids = keys.flatMap((key) => Array.from({ length: 8 }, (_, n) => `${key} ${n}`))
    const starts = ids.map((id, n) =>
      enqueue(world, at(stores, n), newRun(id, { queue: 'media', partitionKey: id.slice(0, 2) })),
    )
    const gauge = new Gauge()
    const ended: string[] = []
    const work = async (worker: number): Promise<void> => {
      for (let n = 0; ended.length < ids.length && n < 1_000; n++) {
        const store = at(stores, worker)
        for (const claimed of await claim(world, store)) {
          gauge.enter(claimed.run.lane ?? '')
          await patiently(() => store.runs([claimed.run.id]))
          gauge.leave(claimed.run.lane ?? '')
          await settle(world, store, claimed)
          ended.push(claimed.run.id)
        }
      }
    }
    await Promise.all([...starts, ...Array.from({ length: HANDLES }, (_, n) => work(n))])
    assert.deepEqual(ended.toSorted(), ids.toSorted())
    assert.deepEqual(gauge.highest, Object.fromEntries(keys.map((key) => [key, 1])))
  })
}

function deduplication(test: Test): void {
  const start = (n: number, policy: 'reject' | 'returnExisting'): Command => ({
    type: 'enqueue',
    commandId: `start ${n}`,
    runs: [newRun(`run ${n}`, { queue: 'media', dedup: { id: 'order-1', policy } })],
  })

  test('twelve contenders for one deduplication id: one is admitted (Q29)', async (world) => {
    const stores = await handles(world)
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, n) => one(world, at(stores, n), start(n, 'reject'))),
    )
    const [admitted, ...others] = outcomes.filter(({ type }) => type === 'accepted')
    assert.equal(others.length, 0)
    const holder = admitted?.type === 'accepted' ? admitted.runs[0]?.id : undefined
    for (const answer of outcomes) {
      if (answer.type === 'deduplicated') assert.equal(answer.holder, holder)
    }
    assert.equal((await world.store.list({ limit: 20 })).length, 1)
  })

  test('twelve that take whatever holds it all get the one', async (world) => {
    const stores = await handles(world)
    const starts = Array.from({ length: 12 }, (_, n) => one(world, at(stores, n), start(n, 'returnExisting')))
    const ids = (await Promise.all(starts)).flatMap((answer) => (answer.type === 'accepted' ? answer.runs : []))
    assert.equal(new Set(ids.map(({ id }) => id)).size, 1)
    assert.equal(ids.filter(({ created }) => created).length, 1)
  })

  test('requeues and starts that race for an id: one run holds it', async (world) => {
    const stores = await handles(world)
    for (let n = 0; n < 6; n++) {
      await world.commit(start(n, 'reject'))
      await world.cancel(`run ${n}`)
    }
    await Promise.all([
      ...[0, 1, 2, 3, 4, 5].map((n) =>
        one(world, at(stores, n), { type: 'requeue', commandId: `requeue ${n}`, runId: `run ${n}` }),
      ),
      ...[6, 7].map((n) => one(world, at(stores, n), start(n, 'reject'))),
    ])
    assert.equal((await world.store.list({ limit: 20, status: ['ENQUEUED'] })).length, 1)
  })
}
