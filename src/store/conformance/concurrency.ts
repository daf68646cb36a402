/**
 * Races: many calls at once, through several handles where the store has them. Whatever the interleaving, a run has
 * one claim, one ending, and one place.
 */
import assert from 'node:assert/strict'
import type { Command, Store } from '../contract.ts'
import { at, HANDLES, handles, one, patiently } from './handles.ts'
import { LEASE_MS, newClaim, newRun, numbered, outcome, SUCCEED } from './makers.ts'
import { claimRequest } from './sources.ts'
import type { Test } from './world.ts'

export function concurrency(test: Test): void {
  claims(test)
  commits(test)
  againstReclaims(test)
}

function claims(test: Test): void {
  test('claims at once give each run to one of them (C-25)', async (world) => {
    const stores = await handles(world)
    const ids = numbered('run', 120)
    await world.enqueue(...ids)
    const claimed = await Promise.all(stores.map((store, n) => claimAll(store, `worker ${n}`)))
    assert.deepEqual(claimed.flat().toSorted(), ids.toSorted())
  })

  test('claims race with starts, and nothing is left behind', async (world) => {
    const stores = await handles(world)
    const ids = numbered('run', 100)
    const starts = ids.map((id, n) =>
      patiently(() => at(stores, n).commit([{ type: 'enqueue', commandId: `start ${id}`, runs: [newRun(id)] }])),
    )
    const early = await Promise.all(stores.map((store, n) => claimAll(store, `early ${n}`)))
    await Promise.all(starts)
    const late = await claimAll(at(stores, 0), 'late')
    assert.deepEqual([...early.flat(), ...late].toSorted(), ids.toSorted())
  })

  test('claim and cancel at once: it is cancelled, or asked, never both claimed and ended', async (world) => {
    const stores = await handles(world)
    const ids = numbered('run', 40)
    await world.enqueue(...ids)
    const [claimed, outcomes] = await Promise.all([
      claimAll(at(stores, 0), 'worker'),
      Promise.all(
        ids
          .toReversed()
          .map((runId, n) =>
            one(world, at(stores, 1 + (n % (HANDLES - 1))), { type: 'cancel', commandId: `cancel ${runId}`, runId }),
          ),
      ),
    ])
    for (const [n, runId] of ids.toReversed().entries()) {
      const run = await world.run(runId)
      const expected = claimed.includes(runId) ? ['requested', 'PENDING'] : ['cancelled', 'CANCELLED']
      assert.deepEqual([outcomes[n]?.type, run.status], expected, runId)
    }
  })
}

function commits(test: Test): void {
  test('starts of one id at once create it once, for one of them (C-23)', async (world) => {
    const stores = await handles(world)
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        one(world, at(stores, n), { type: 'enqueue', commandId: `c ${n}`, runs: [newRun('a')] }),
      ),
    )
    const created = outcomes.filter((answer) => answer.type === 'accepted' && answer.runs[0]?.created === true)
    assert.equal(created.length, 1)
    assert.equal((await world.store.list({ limit: 100 })).length, 1)
  })

  test('one start sent twice at once is one start', async (world) => {
    const stores = await handles(world)
    const start: Command = { type: 'enqueue', commandId: 'c1', runs: [newRun('a', { claim: newClaim('t1') })] }
    const outcomes = await Promise.all(stores.map((store) => one(world, store, start)))
    for (const answer of outcomes) assert.deepEqual(answer, outcomes[0])
    assert.equal((await world.run('a')).deliveries, 1)
  })

  test('cancels of one run at once: one of them cancels', async (world) => {
    const stores = await handles(world)
    await world.enqueue('a')
    const outcomes = await Promise.all(
      stores.map((store, n) => one(world, store, { type: 'cancel', commandId: `c ${n}`, runId: 'a' })),
    )
    assert.deepEqual(outcomes.map(({ type }) => type).toSorted(), [
      'cancelled',
      'notCancelled',
      'notCancelled',
      'notCancelled',
    ])
  })

  test('requeues of one run at once: one of them requeues', async (world) => {
    const stores = await handles(world)
    await world.enqueue('a')
    await world.cancel('a')
    const outcomes = await Promise.all(
      stores.map((store, n) => one(world, store, { type: 'requeue', commandId: `r ${n}`, runId: 'a' })),
    )
    assert.deepEqual(outcomes.map(({ type }) => type).toSorted(), [
      'notRequeued',
      'notRequeued',
      'notRequeued',
      'requeued',
    ])
    assert.equal((await world.run('a')).epoch, 1)
  })

  test('many runs make progress at once, each with its own whole history', async (world) => {
    const stores = await handles(world)
    const work = async (n: number): Promise<void> => {
      const [id, token, store] = [`run ${n}`, `t ${n}`, at(stores, n)]
      await one(world, store, { type: 'enqueue', commandId: id, runs: [newRun(id, { claim: newClaim(token) })] })
      for (let seq = 0; seq < 5; seq++) {
        await one(world, store, { type: 'checkpoint', runId: id, token, entries: [outcome(seq, { value: `"${id}"` })] })
      }
      await one(world, store, { type: 'settle', runId: id, token, entries: [], settlement: SUCCEED })
    }
    const numbers = Array.from({ length: 30 }, (_, n) => n)
    await Promise.all(numbers.map(work))
    for (const n of numbers) {
      assert.equal((await world.run(`run ${n}`)).status, 'SUCCESS')
      const history = await world.history(`run ${n}`)
      assert.deepEqual(
        history.map(({ seq, value }) => [seq, value]),
        [0, 1, 2, 3, 4].map((seq) => [seq, `"run ${n}"`]),
      )
    }
  })
}

function againstReclaims(test: Test): void {
  test('reclaims at once take each claim once (E-07)', async (world) => {
    const stores = await handles(world)
    const ids = numbered('run', 60)
    await world.enqueue(...ids.map((id) => newRun(id, { claim: newClaim(id) })))
    world.clock.pass(LEASE_MS)
    const reclaimed = await Promise.all(
      Array.from({ length: 12 }, (_, n) => patiently(() => at(stores, n).reclaim({ deadOwners: [], limit: 10 }))),
    )
    const rest = await world.store.reclaim({ deadOwners: [], limit: 100 })
    assert.deepEqual(
      [...reclaimed.flatMap(({ runs }) => runs), ...rest.runs].map(({ id }) => id).toSorted(),
      ids.toSorted(),
    )
    for (const id of ids) assert.equal((await world.run(id)).crashes, 1)
  })

  test('settle and reclaim at once: the claim ends once, one way or the other (D-23)', async (world) => {
    const stores = await handles(world)
    const ids = numbered('run', 40)
    await world.enqueue(...ids.map((id) => newRun(id, { claim: newClaim(id) })))
    world.clock.pass(LEASE_MS)
    const [settled, reclaimed] = await Promise.all([
      Promise.all(
        ids.map((id, n) =>
          one(world, at(stores, n), {
            type: 'settle',
            runId: id,
            token: id,
            entries: [outcome(0)],
            settlement: SUCCEED,
          }),
        ),
      ),
      patiently(() => at(stores, 1).reclaim({ deadOwners: [], limit: 100 })),
    ])
    for (const [n, id] of ids.entries()) {
      const taken = reclaimed.runs.some((run) => run.id === id)
      assert.equal(settled[n]?.type, taken ? 'claimLost' : 'applied', id)
      assert.equal((await world.run(id)).status, taken ? 'ENQUEUED' : 'SUCCESS', id)
      assert.equal((await world.history(id)).length, taken ? 0 : 1, id)
    }
  })

  test('renew and reclaim at once: what was renewed is held, what was taken is lost', async (world) => {
    const stores = await handles(world)
    const ids = numbered('run', 40)
    await world.enqueue(...ids.map((id) => newRun(id, { claim: newClaim(id) })))
    world.clock.pass(LEASE_MS)
    const renewals = [0, 10, 20, 30].map((from, n) => {
      const claimsOf = ids.slice(from, from + 10).map((id) => ({ runId: id, token: id }))
      return patiently(() => at(stores, n).renew(claimsOf, LEASE_MS))
    })
    const reclaimed = await patiently(() => at(stores, 2).reclaim({ deadOwners: [], limit: 100 }))
    const lost = (await Promise.all(renewals)).flatMap((answer) => answer.lost)
    assert.deepEqual(reclaimed.runs.map(({ id }) => id).toSorted(), lost.toSorted())
  })
}

async function claimAll(store: Store, owner: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let round = 0; ; round++) {
    const tokens = [0, 1, 2].map((n) => `${owner} ${round} ${n}`)
    const { runs } = await patiently(() => store.claim(claimRequest(tokens, { owner })))
    if (runs.length === 0) return ids
    ids.push(...runs.map(({ run }) => run.id))
  }
}
