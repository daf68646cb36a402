/** The lease thread: a blocked process keeps its claims, up to a bound, and the thread leaves nothing behind. */
import { existsSync, rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { realScheduler } from '../../../src/core/scheduler.ts'
import type { RenewOutcome, Store } from '../../../src/store/contract.ts'
import { exitOf, says, startChild } from './children.ts'
import { freshPath, openStore } from './files.ts'
import { enqueue, newRun } from './requests.ts'

const LEASE_MS = 900

describe('a process that blocks its event loop', () => {
  it.each([
    ['for longer than the lease keeps its claim', 60_000, 4 * LEASE_MS, [], 'applied'],
    ['for longer than it may loses its claim', LEASE_MS, 5 * LEASE_MS, ['a'], 'claimLost'],
  ])('%s', async (_, maxBlockedMs, blockMs, lost, outcome) => {
    const path = freshPath()
    const store = await openStore(path)
    const child = startChild('block.ts', path, String(LEASE_MS), String(maxBlockedMs), String(blockMs))
    await says(child, 'blocked')
    let verdict: string | undefined
    const said = says(child, 'claim is ').then((output) => {
      verdict = output
    })
    const reclaimed: string[] = []
    while (verdict === undefined) {
      for (const { id } of (await store.reclaim({ deadOwners: [], limit: 10 })).runs) reclaimed.push(id)
      await realScheduler.turn()
    }
    await said
    expect(verdict).toContain(`claim is ${outcome}`)
    expect(reclaimed).toEqual(lost)
    // Neither the store nor the thread was closed there: they must not keep the process alive.
    expect(await exitOf(child)).toBe(0)
  })
})

function startThread(store: Store): {
  readonly thread: ReturnType<Store['leaseThread']>
  readonly renewed: Promise<RenewOutcome>
  readonly failed: Promise<unknown>
} {
  let thread: ReturnType<Store['leaseThread']> = null
  let onFailed: (error: unknown) => void = () => {}
  const failed = new Promise<unknown>((resolve) => {
    onFailed = resolve
  })
  const renewed = new Promise<RenewOutcome>((resolve) => {
    thread = store.leaseThread({ leaseMs: LEASE_MS, maxBlockedMs: 60_000, onRenewed: resolve, onFailed })
  })
  return { thread, renewed, failed }
}

async function startClaimed(store: Store, ...ids: readonly string[]): Promise<void> {
  const runs = ids.map((id) =>
    newRun(id, { claim: { token: `token of ${id}`, owner: 'o', leaseMs: LEASE_MS, version: null } }),
  )
  await enqueue(store, ...runs)
}

describe('the thread', () => {
  it('renews what it holds, not what was dropped, and reports losses and requests to cancel', async () => {
    const store = await openStore(freshPath())
    await startClaimed(store, 'kept', 'dropped', 'asked')
    await store.commit([{ type: 'cancel', commandId: 'c', runId: 'asked' }])
    const before = await store.runs(['kept', 'dropped'])
    const { thread, renewed } = startThread(store)
    thread?.hold(['kept', 'dropped', 'asked', 'lost'].map((id) => ({ runId: id, token: `token of ${id}` })))
    thread?.drop(['token of dropped'])
    expect(await renewed).toEqual({ lost: ['token of lost'], cancelRequested: ['token of asked'] })
    const after = await store.runs(['kept', 'dropped'])
    expect(after[0]?.leaseUntil).toBeGreaterThan(before[0]?.leaseUntil ?? 0)
    expect(after[1]?.leaseUntil).toBe(before[1]?.leaseUntil)
    await thread?.stop()
    await thread?.stop()
  })

  it('that fails says so', async () => {
    const path = freshPath()
    const store = await openStore(path)
    await startClaimed(store, 'a')
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix)
    const { thread, failed } = startThread(store)
    thread?.hold([{ runId: 'a', token: 'token of a' }])
    expect(await failed).toBeInstanceOf(Error)
    expect(existsSync(path)).toBe(false)
    await thread?.stop()
  })

  it('ends with its store', async () => {
    const store = await openStore(freshPath())
    const { thread } = startThread(store)
    await store.close()
    await thread?.stop()
  })
})
