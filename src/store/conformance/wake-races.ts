/** Wake-ups under races: a signal, an end or a start that meets a suspension or a look is never lost (P7, D-31). */
import assert from 'node:assert/strict'
import { at, HANDLES, handles, one, patiently } from './handles.ts'
import { FAIL, newClaim, newRun, numbered, SUCCEED, suspendUntil } from './makers.ts'
import { claimRequest, from, runsOf } from './sources.ts'
import type { Test, World } from './world.ts'

const COUNT = 40

export function wakeRaces(test: Test): void {
  async function startAll(world: World, what: string): Promise<readonly string[]> {
    const ids = Array.from({ length: COUNT }, (_, n) => `${what} ${n}`)
    await world.enqueue(...ids.map((id) => newRun(id, { claim: newClaim(id) })))
    return ids
  }
  const tokens = Array.from({ length: COUNT * 2 }, (_, n) => `after the race ${n}`)

  test('signals race with the waits they are for and with the suspensions: each is taken once', async (world) => {
    const stores = await handles(world)
    const ids = await startAll(world, 'run')
    const raced = ids.map(async (id, n) => {
      const send = one(world, at(stores, n + 1), {
        type: 'signal',
        commandId: `signal ${id}`,
        key: id,
        payload: `"${id}"`,
      })
      const store = at(stores, n)
      const waited = await one(world, store, { type: 'wait', runId: id, token: id, position: 0, key: id, entries: [] })
      if (waited.type === 'waiting') {
        await one(world, store, { type: 'settle', runId: id, token: id, entries: [], settlement: suspendUntil(null) })
      }
      await send
      return waited.type
    })
    const answers = await Promise.all(raced)
    const suspended = ids.filter((_, n) => answers[n] === 'waiting')
    assert.deepEqual((await world.claimIds(tokens)).toSorted(), suspended.toSorted(), 'all are due')
    const payloads = await world.store.signals(ids.map((runId) => ({ runId, position: 0 })))
    assert.deepEqual([...payloads.values()].toSorted(), ids.map((id) => `"${id}"`).toSorted())
  })

  test('ends race with the suspensions of those who wait for them', async (world) => {
    const stores = await handles(world)
    const parents = await startAll(world, 'parent')
    const children = await startAll(world, 'child')
    await Promise.all(
      parents.flatMap((parent, n) => {
        const child = children[n] ?? ''
        const settlement = suspendUntil(null, { position: 0, runId: child })
        return [
          one(world, at(stores, n), { type: 'settle', runId: parent, token: parent, entries: [], settlement }),
          one(world, at(stores, n + 1), {
            type: 'settle',
            runId: child,
            token: child,
            entries: [],
            settlement: SUCCEED,
          }),
        ]
      }),
    )
    assert.deepEqual((await world.claimIds(tokens)).toSorted(), parents.toSorted())
  })

  test('cancellations of parents race with the ends of their children: each ends once', async (world) => {
    const stores = await handles(world)
    const parents = numbered('parent', COUNT)
    await world.enqueue(...parents)
    const children = parents.map((parent) => `child of ${parent}`)
    await world.enqueue(
      ...parents.map((parentId) =>
        newRun(`child of ${parentId}`, { parentId, claim: newClaim(`child of ${parentId}`) }),
      ),
    )
    const settled = await Promise.all(
      parents.map(async (parent, n) => {
        const child = `child of ${parent}`
        const [answer] = await Promise.all([
          one(world, at(stores, n), { type: 'settle', runId: child, token: child, entries: [], settlement: FAIL }),
          one(world, at(stores, n + 1), { type: 'cancel', commandId: `cancel ${parent}`, runId: parent }),
        ])
        return answer
      }),
    )
    for (const [n, answer] of settled.entries()) {
      assert.ok(answer.type === 'applied')
      assert.equal((await world.run(children[n] ?? '')).status, answer.status)
      assert.equal((await world.run(parents[n] ?? '')).status, 'CANCELLED')
    }
  })

  test('starts in queues race with claims that see them empty: none is left behind (C-08)', async (world) => {
    const stores = await handles(world)
    await world.register('lanes', { partitioned: true, globalConcurrency: 1 })
    await world.register('plain', { globalConcurrency: 1 })
    const sources = [from('lanes'), from('plain')]
    const claimed: string[] = []
    const drain = async (store: number, round: string): Promise<number> => {
      const request = claimRequest(
        [1, 2, 3].map((n) => `${round} ${n}`),
        { sources },
      )
      const { runs } = await patiently(() => at(stores, store).claim(request))
      for (const { run, token } of runs) {
        claimed.push(run.id)
        await one(world, at(stores, store), { type: 'settle', runId: run.id, token, entries: [], settlement: SUCCEED })
      }
      return runs.length
    }
    const ids = numbered('run', COUNT)
    await Promise.all([
      ...ids.map((id, n) => {
        const [run] = runsOf(n % 2 === 0 ? 'lanes' : 'plain', [id], { partitionKey: `key ${n % 6}` })
        assert.ok(run !== undefined)
        return one(world, at(stores, n), { type: 'enqueue', commandId: id, runs: [run] })
      }),
      ...Array.from({ length: HANDLES * 5 }, (_, n) => drain(n, `early ${n}`)),
    ])
    for (let n = 0; (await drain(n, `late ${n}`)) > 0; n++);
    assert.deepEqual(claimed.toSorted(), ids.toSorted())
  })

  test('changes of a KV value race: one of those that compare with it wins', async (world) => {
    const stores = await handles(world)
    for (let round = 0; round < 10; round++) {
      const changes = Array.from({ length: HANDLES }, (_, n) => {
        const put = { key: 'k', value: `${round} ${n}`, hash: `#${round}` }
        const expected = round === 0 ? null : `#${round - 1}`
        return one(world, at(stores, n), {
          type: 'kv',
          commandId: `${round} ${n}`,
          change: { type: 'putIf', ...put, expected },
        })
      })
      const applied = (await Promise.all(changes)).map((answer) => answer.applied)
      assert.equal(applied.filter(Boolean).length, 1, `round ${round}`)
      assert.equal(await world.value('k'), `${round} ${applied.indexOf(true)}`)
    }
  })

  test('processes that register queues at once agree on what holds', async (world) => {
    const stores = await handles(world)
    const answers = await Promise.all(
      stores.map((store, n) =>
        patiently(() => store.registerQueues([{ ...BASE, globalConcurrency: n, configVersion: n }])),
      ),
    )
    const [media] = await world.store.queues()
    assert.equal(media?.configVersion, HANDLES - 1)
    assert.equal(media.globalConcurrency, HANDLES - 1)
    for (const [answer] of answers) assert.equal(answer?.globalConcurrency, answer?.configVersion)
  })
}

const BASE = {
  name: 'media',
  releaseWhileWaiting: false,
  rateLimit: null,
  priorityEnabled: false,
  partitioned: false,
  retention: null,
} as const
