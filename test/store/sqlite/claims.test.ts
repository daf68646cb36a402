/** Claiming where instants and processes don't stand still. */
import { expect, it } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { claimsOf, startChild } from './children.ts'
import { freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newQueue, newRun } from './requests.ts'

/** Goes on by a millisecond between any two looks at it. */
function restlessClock(): Clock {
  let now = 1_000_000
  return { kind: 'mock', now: () => ++now, at: () => ({ cancel() {} }), join: () => () => {} }
}

it('finds what is claimable on a clock that moves between two looks', async () => {
  const store = await openStore(freshPath(), restlessClock())
  await enqueue(store, newRun('a'), newRun('b', { claim: { token: 't', owner: 'o', leaseMs: 1_000, version: null } }))
  await store.commit([
    { type: 'settle', runId: 'b', token: 't', entries: [], settlement: { type: 'suspend', wakeAt: 1, children: [] } },
  ])
  expect((await store.claim(newClaim(['t1']))).runs[0]?.run.id).toBe('b')
  expect((await store.claim(newClaim(['t2']))).runs[0]?.run.id).toBe('a')
})

it('merges the lists of many definitions, page by page, in order of acceptance', async () => {
  const store = await openStore(freshPath())
  const runs = Array.from({ length: 500 }, (_, index) =>
    newRun(`run ${index}`, { definition: `definition ${index % 7 < 5 ? 0 : index % 7}` }),
  )
  await enqueue(store, ...runs)
  const tokens = Array.from({ length: 400 }, (_, index) => `token ${index}`)
  const definitions = ['definition 0', 'definition 5', 'definition 6', 'definition 0'].map((name) => {
    return { name, kind: 'workflow', maxRecoveries: 50, timeoutMs: null } as const
  })
  const claimed = await store.claim(newClaim(tokens, { definitions }))
  expect(claimed.runs.map(({ run }) => run.id)).toEqual(runs.slice(0, 400).map(({ id }) => id))
})

it('gives each run to one of several processes (C-25)', async () => {
  const path = freshPath()
  const store = await openStore(path)
  const ids = Array.from({ length: 1_000 }, (_, index) => `run ${index}`)
  await enqueue(store, ...ids.map((id) => newRun(id)))
  const claims = await Promise.all(['p1', 'p2', 'p3'].map((owner) => claimsOf(startChild('claim.ts', path, owner))))
  expect(claims.flat().toSorted()).toEqual(ids.toSorted())
})

it.each([
  ['a global limit', { globalConcurrency: 40 }, 40],
  ['a global limit of each of ten lanes', { globalConcurrency: 4, partitioned: true }, 40],
  ['a rate limit', { rateLimit: { limit: 40, periodMs: 600_000 } }, 40],
  ['a rate limit of each of ten lanes', { rateLimit: { limit: 4, periodMs: 600_000 }, partitioned: true }, 40],
])('several processes together keep to %s, and reach it (Q14)', async (_, knobs, limit) => {
  const path = freshPath()
  const store = await openStore(path)
  await store.registerQueues([newQueue('media', knobs)])
  const runs = Array.from({ length: 200 }, (_, n) => {
    return newRun(`run ${n}`, { queue: 'media', partitionKey: `lane ${n % 10}` })
  })
  await enqueue(store, ...runs)
  const claims = await Promise.all(
    ['p1', 'p2', 'p3'].map((owner) => claimsOf(startChild('claim.ts', path, owner, 'media'))),
  )
  expect(new Set(claims.flat()).size).toBe(limit)
  expect(claims.flat()).toHaveLength(limit)
})
