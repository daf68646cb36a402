import { describe, expect, test } from 'vitest'
import { realRandom } from '../../src/core/random.ts'
import { realScheduler } from '../../src/core/scheduler.ts'
import { Committer } from '../../src/runtime/committer/committer.ts'
import { type ReaperOptions, reaper } from '../../src/runtime/reaper.ts'
import type { ServiceFailure } from '../../src/runtime/service.ts'
import type { ReclaimedRun } from '../../src/store/contract.ts'
import { memory } from '../../src/store/memory/index.ts'
import type { ProcessRecord } from '../../src/store/records.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { newRun } from './commands.ts'
import { until } from './fast-scheduler.ts'

const LEASE_MS = 30_000

async function reaping(options: Partial<ReaperOptions> = {}) {
  const clock = new MockClock()
  const store = memory({ clock })
  await store.open()
  const committer = new Committer({ store, scheduler: realScheduler, random: realRandom, onTrouble: () => {} })
  const batches: (readonly ReclaimedRun[])[] = []
  const failures: ServiceFailure[] = []
  const service = reaper({
    store,
    committer,
    scheduler: realScheduler,
    random: realRandom,
    self: processOf('self'),
    onReclaimed: (runs) => void batches.push(runs),
    onError: (failure) => void failures.push(failure),
    isDead: ({ owner }) => owner.startsWith('dead'),
    ...options,
  })
  clock.join({
    activity: () => service.activity() + committer.activity(),
    busy: () => service.busy() || committer.pending() > 0,
    runningUserCode: () => false,
  })
  const claimed = async (owner: string, count: number): Promise<void> => {
    const runs = Array.from({ length: count }, (_, n) => {
      const id = `${owner}-${n}`
      return { ...newRun(id, '1'), claim: { token: `token-${id}`, owner, leaseMs: LEASE_MS, version: null } }
    })
    await committer.submit({ type: 'enqueue', commandId: owner, runs })
  }
  return { service, clock, store, committer, batches, failures, claimed }
}

const processOf = (owner: string): Omit<ProcessRecord, 'registeredAt'> => {
  const what = { definitions: [], queues: [], version: null }
  return { owner, host: 'h', pid: 1, pidStart: '1', bootId: 'b', pidNamespace: 'n', ...what }
}

describe('the reaper', () => {
  test('takes the claims of the dead at its first round, in batches, and their process rows', async () => {
    const { service, store, committer, batches, claimed } = await reaping()
    for (const owner of ['dead-1', 'dead-2', 'alive']) await committer.registerProcess(processOf(owner))
    await claimed('dead-1', 450)
    await claimed('alive', 3)
    service.start()
    await until(() => batches.length === 3)
    expect(batches.map((batch) => batch.length)).toEqual([200, 200, 50])
    expect(new Set(batches.flat().map(({ owner }) => owner))).toEqual(new Set(['dead-1']))
    expect(new Set(batches.flat().map(({ status }) => status))).toEqual(new Set(['ENQUEUED']))
    await until(() => !service.busy())
    expect((await store.processes()).map(({ owner }) => owner)).toEqual(['alive'])
    await service.stop()
  })

  test('keeps the list of processes short: itself it registers again, others are gone after days', async () => {
    const { service, store, committer, clock, claimed } = await reaping()
    for (const owner of ['self', 'elsewhere', 'with-claims']) await committer.registerProcess(processOf(owner))
    await claimed('with-claims', 1)
    const names = async (): Promise<readonly string[]> => (await store.processes()).map(({ owner }) => owner).sort()
    await clock.advance('2d')
    await service.tick()
    expect(await names()).toEqual(['elsewhere', 'self', 'with-claims'])
    await clock.advance('2d')
    await service.tick()
    expect(await names()).toEqual(['self'])
    await service.stop()
  })

  test('takes a claim at the very instant its lease ends', async () => {
    const { service, clock, batches, claimed } = await reaping()
    await claimed('lost', 1)
    service.start()
    await clock.advance(LEASE_MS - 1)
    expect(batches).toEqual([])
    await clock.advance(1)
    expect(batches.flat()).toMatchObject([{ id: 'lost-0', owner: 'lost' }])
    await service.stop()
  })

  test('learns by polling of leases that began after its round', async () => {
    const { service, clock, batches, claimed } = await reaping()
    service.start()
    await clock.advance(0)
    await claimed('lost', 1)
    for (let seconds = 0; seconds < 35; seconds += 5) await clock.advance('5s')
    expect(batches.length).toBe(1)
    await service.stop()
  })

  test('lets its own process renew first, and takes nothing if that fails', async () => {
    let broken = true
    const { service, clock, batches, claimed } = await reaping({
      beforeRound: async () => {
        if (broken) throw new Error('renewal refused')
      },
    })
    await claimed('own', 1)
    await clock.advance(LEASE_MS)
    await expect(service.tick()).rejects.toThrow('renewal refused')
    expect(batches).toEqual([])
    broken = false
    await service.tick()
    expect(batches.length).toBe(1)
  })

  test('a round says when to come back: at once after a full batch, else at the next lease end', async () => {
    const { service, clock, claimed } = await reaping()
    await claimed('dead', 200)
    await claimed('alive', 1)
    expect(await service.tick()).toEqual({ dueAt: clock.now() + LEASE_MS, pollAfterMs: 5_000 })
    await clock.advance(LEASE_MS)
    expect(await service.tick()).toEqual({ dueAt: clock.now(), pollAfterMs: 5_000 })
    expect(await service.tick()).toEqual({ dueAt: null, pollAfterMs: 5_000 })
  })

  test('does not spin on a lease that has ended and can’t be taken', async () => {
    const clock = new MockClock()
    let reclaims = 0
    const { service } = await reaping({
      store: { clock, processes: async () => [], nextExpiry: async () => clock.now() - 1 },
      committer: {
        reclaim: async () => {
          reclaims += 1
          return { runs: [], rippled: false }
        },
        registerProcess: async () => {},
        removeProcesses: async () => {},
      },
    })
    expect(await service.tick()).toEqual({ dueAt: null, pollAfterMs: 5_000 })
    expect(reclaims).toBe(1)
  })
})
