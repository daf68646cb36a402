/** Claiming where instants and processes don't stand still. */
import { expect, it } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { claimsOf, startChild } from './children.ts'
import { enqueue, freshPath, newRun, openStore } from './files.ts'

/** Goes on by a millisecond between any two looks at it. */
function restlessClock(): Clock {
  let now = 1_000_000
  return { kind: 'mock', now: () => ++now, at: () => ({ cancel() {} }), join: () => () => {} }
}

it('finds what is claimable on a clock that moves between two looks', async () => {
  const store = await openStore(freshPath(), restlessClock())
  await enqueue(store, newRun('a'), newRun('b', { claim: { token: 't', owner: 'o', leaseMs: 1_000 } }))
  await store.commit([
    { type: 'settle', runId: 'b', token: 't', entries: [], settlement: { type: 'suspend', wakeAt: 1 } },
  ])
  const request = { owner: 'o', leaseMs: 1_000, definitions: ['other', 'convert'] }
  expect((await store.claim({ ...request, tokens: ['t1'] }))[0]?.run.id).toBe('b')
  expect((await store.claim({ ...request, tokens: ['t2'] }))[0]?.run.id).toBe('a')
})

it('merges the lists of many definitions, page by page, in order of acceptance', async () => {
  const store = await openStore(freshPath())
  const runs = Array.from({ length: 500 }, (_, index) =>
    newRun(`run ${index}`, { definition: `definition ${index % 7 < 5 ? 0 : index % 7}` }),
  )
  await enqueue(store, ...runs)
  const tokens = Array.from({ length: 400 }, (_, index) => `token ${index}`)
  const definitions = ['definition 0', 'definition 5', 'definition 6', 'definition 0']
  const claimed = await store.claim({ owner: 'o', leaseMs: 60_000, definitions, tokens })
  expect(claimed.map(({ run }) => run.id)).toEqual(runs.slice(0, 400).map(({ id }) => id))
})

it('gives each run to one of several processes (C-25)', async () => {
  const path = freshPath()
  const store = await openStore(path)
  const ids = Array.from({ length: 1_000 }, (_, index) => `run ${index}`)
  await enqueue(store, ...ids.map((id) => newRun(id)))
  const claims = await Promise.all(['p1', 'p2', 'p3'].map((owner) => claimsOf(startChild('claim.ts', path, owner))))
  expect(claims.flat().toSorted()).toEqual(ids.toSorted())
})
