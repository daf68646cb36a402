import { describe, expect, test } from 'vitest'
import { realRandom } from '../../src/core/random.ts'
import { LeaseKeepers } from '../../src/runtime/lease-keepers.ts'
import type { HeldClaim, LeaseThread, LeaseThreadOptions } from '../../src/store/contract.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'
import { workerQueue, workshop } from './workshop.ts'

function keeping(leaseThread: (options: LeaseThreadOptions) => LeaseThread | null = () => null) {
  const clock = new MockClock(1_000_000)
  /** Of each renewal: how long after the start, for how long, and the tokens. */
  const renewals: (readonly [number, number, ...string[]])[] = []
  const told: string[] = []
  const lost = new Set<string>()
  const keepers = new LeaseKeepers({
    store: { clock, leaseThread },
    committer: {
      renew: async (claims, leaseMs) => {
        const tokens = claims.map(({ token }) => token)
        renewals.push([clock.now() - 1_000_000, leaseMs, ...tokens])
        return { lost: tokens.filter((token) => lost.has(token)), cancelRequested: [] }
      },
    },
    scheduler: new FastScheduler(),
    random: realRandom,
    onLost: (token) => void told.push(`lost ${token}`),
    onCancelRequested: () => {},
    onError: () => {},
  })
  clock.join({ activity: () => keepers.activity(), busy: () => keepers.busy(), runningUserCode: () => false })
  return { keepers, clock, renewals, told, lost }
}

describe('claims with leases of different lengths', () => {
  test('are each renewed at a third of their own, for as long as their own', async () => {
    const { keepers, clock, renewals } = keeping()
    keepers.start()
    keepers.hold('a', 'long', 30_000)
    keepers.hold('b', 'short', 6_000)
    await turns(4)
    for (let second = 0; second < 11; second += 1) await clock.advance('1s')
    expect(renewals).toEqual([
      [2_000, 6_000, 'short'],
      [4_000, 6_000, 'short'],
      [6_000, 6_000, 'short'],
      [8_000, 6_000, 'short'],
      [10_000, 30_000, 'long'],
      [10_000, 6_000, 'short'],
    ])
    await keepers.stop()
  })

  test('are found lost, dropped and overdue each in its place', async () => {
    const { keepers, clock, renewals, told, lost } = keeping()
    keepers.hold('a', 'long', 30_000)
    keepers.hold('b', 'short', 6_000)
    keepers.hold('c', 'gone', 6_000)
    keepers.drop('gone')
    lost.add('short')
    await clock.advance('6s')
    await keepers.renewOverdue()
    expect(renewals).toEqual([[6_000, 6_000, 'short']])
    expect(told).toEqual(['lost short'])
    await clock.advance('24s')
    await keepers.renewOverdue()
    expect(renewals.slice(1)).toEqual([[30_000, 30_000, 'long']])
    await keepers.stop()
  })

  test('have a thread for each length, from the first claim on; none without claims', async () => {
    const calls: string[] = []
    const tokens = (claims: readonly HeldClaim[]) => claims.map(({ token }) => token).join()
    const { keepers } = keeping(({ leaseMs }) => {
      calls.push(`start ${leaseMs}`)
      return {
        hold: (claims) => void calls.push(`${leaseMs} holds ${tokens(claims)}`),
        drop: (dropped) => void calls.push(`${leaseMs} drops ${dropped.join()}`),
        stop: async () => void calls.push(`stop ${leaseMs}`),
      }
    })
    keepers.start()
    await turns(4)
    expect(calls).toEqual([])
    keepers.hold('a', 'a', 30_000)
    keepers.hold('b', 'b', 6_000)
    keepers.drop('a')
    keepers.hold('c', 'c', 30_000)
    await keepers.stop()
    expect(calls).toEqual([
      ...['start 30000', '30000 holds a', 'start 6000', '6000 holds b', '30000 drops a', '30000 holds c'],
      ...['stop 30000', 'stop 6000'],
    ])
  })
})

test('a run in hand is renewed by the lease of its queue, from its claim to its end', async () => {
  const clock = new MockClock()
  const { worker, store, calls, held, enqueue } = await workshop({ clock })
  await worker({ queues: [workerQueue('q', {}, { leaseMs: 3_000 })] })
  await enqueue('q', ['queued'])
  await enqueue(null, ['plain'])
  await until(() => held.now.length === 2)
  const leases = async () => {
    const runs = await store.runs(['queued', 'plain'])
    return runs.map((run) => (run?.leaseUntil ?? 0) - clock.now())
  }
  expect(await leases()).toEqual([3_000, 30_000])
  for (let second = 0; second < 12; second += 1) await clock.advance('1s')
  for (const left of await leases()) expect(left).toBeGreaterThan(0)
  expect(held.begun, 'nobody took them over').toEqual(['queued', 'plain'])
  held.end('queued')
  held.end('plain')
  await until(() => held.now.length === 0)
  await turns(10)
  calls.length = 0
  await clock.advance('1m')
  expect(calls.filter(({ name }) => name === 'renew')).toEqual([])
})
