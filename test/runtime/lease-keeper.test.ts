import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/core/clock.ts'
import { realRandom } from '../../src/core/random.ts'
import { LeaseKeeper } from '../../src/runtime/lease-keeper.ts'
import type { ServiceFailure } from '../../src/runtime/service.ts'
import type { HeldClaim, LeaseThread, LeaseThreadOptions, RenewOutcome } from '../../src/store/contract.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'

const NOTHING: RenewOutcome = { lost: [], cancelRequested: [] }

interface Setup {
  readonly renew?: (claims: readonly HeldClaim[]) => Promise<RenewOutcome>
  readonly leaseThread?: (options: LeaseThreadOptions) => LeaseThread | null
  readonly clock?: Clock
}

function keeping({ renew = async () => NOTHING, leaseThread = () => null, clock: given }: Setup = {}) {
  const clock = new MockClock(1_000_000)
  /** Of each renewal, how many milliseconds after the start, and the tokens. */
  const renewals: (readonly [number, ...string[]])[] = []
  const told: string[] = []
  const failures: ServiceFailure[] = []
  const keeper = new LeaseKeeper({
    store: { clock: given ?? clock, leaseThread },
    committer: {
      renew: (claims) => {
        renewals.push([clock.now() - 1_000_000, ...claims.map(({ token }) => token)])
        return renew(claims)
      },
    },
    scheduler: new FastScheduler(),
    random: realRandom,
    onLost: (token) => void told.push(`lost ${token}`),
    onCancelRequested: (token) => void told.push(`cancel ${token}`),
    onError: (failure) => void failures.push(failure),
  })
  clock.join({ activity: () => keeper.activity(), busy: () => keeper.busy(), runningUserCode: () => false })
  return { keeper, clock, renewals, told, failures }
}

describe('renewal in process', () => {
  test('at a third of the lease, of the claims that are held', async () => {
    const { keeper, clock, renewals } = keeping()
    keeper.start()
    keeper.hold('a', 'ta')
    keeper.hold('b', 'tb')
    keeper.drop('tb')
    await turns(2)
    for (let seconds = 0; seconds < 30; seconds += 10) await clock.advance('10s')
    expect(renewals).toEqual([
      [10_000, 'ta'],
      [20_000, 'ta'],
      [30_000, 'ta'],
    ])
    await keeper.stop()
  })

  test('a mock clock stops at the end of a held lease, where renewals run first', async () => {
    const { keeper, clock, renewals } = keeping()
    keeper.start()
    keeper.hold('a', 'ta')
    await turns(2)
    await clock.advance('100s')
    expect(renewals.map(([at]) => at)).toEqual([30_000, 60_000, 90_000, 100_000])
    keeper.drop('ta')
    renewals.length = 0
    await clock.advance('1h')
    expect(renewals).toEqual([])
    await keeper.stop()
  })

  test('no claim is ever older than its lease, whenever it was taken', async () => {
    const ends = new Map<string, number>()
    const { keeper, clock } = keeping({
      renew: async (claims) => {
        for (const { token } of claims) {
          expect(ends.get(token)).toBeGreaterThanOrEqual(clock.now())
          ends.set(token, clock.now() + 30_000)
        }
        return NOTHING
      },
    })
    keeper.start()
    await turns(2)
    for (let step = 0; step < 200; step += 1) {
      keeper.hold(`run-${step}`, `t${step}`)
      ends.set(`t${step}`, clock.now() + 30_000)
      if (step % 3 === 0) keeper.drop(`t${step - 3}`)
      if (step % 3 === 0) ends.delete(`t${step - 3}`)
      await clock.advance((step * 7919) % 12_000)
      for (const end of ends.values()) expect(end).toBeGreaterThanOrEqual(clock.now())
    }
    await keeper.stop()
  })

  test('a young claim waits for the next round, an old one is in it', async () => {
    const { keeper, clock, renewals } = keeping()
    keeper.start()
    keeper.hold('old', 'old')
    await turns(2)
    await clock.advance('9s')
    keeper.hold('young', 'young')
    await clock.advance('1s')
    expect(renewals).toEqual([[10_000, 'old']])
    await clock.advance('10s')
    expect(renewals[1]).toEqual([20_000, 'young', 'old'])
    await keeper.stop()
  })

  test('in batches of at most 1,000; one that fails keeps no other from its renewal', async () => {
    let first = true
    const { keeper, clock, renewals, failures } = keeping({
      renew: async () => {
        if (!first) return NOTHING
        first = false
        throw new Error('refused')
      },
    })
    for (let run = 0; run < 2_500; run += 1) keeper.hold(`run-${run}`, `t${run}`)
    keeper.start()
    await turns(2)
    await clock.advance('10s')
    await until(() => renewals.length === 4)
    expect(renewals.map((tokens) => tokens.length - 1)).toEqual([1_000, 1_000, 500, 1_000])
    expect(failures).toMatchObject([{ service: 'lease-keeper', error: { message: 'refused' } }])
    await keeper.stop()
  })
})

describe('what a renewal finds', () => {
  test('lost claims are told once and no longer kept; cancel requests are told each time', async () => {
    const { keeper, clock, renewals, told } = keeping({
      renew: async () => ({ lost: ['ta', 'unknown'], cancelRequested: ['tb', 'unknown'] }),
    })
    keeper.start()
    for (const run of ['a', 'b', 'c']) keeper.hold(run, `t${run}`)
    await turns(2)
    await clock.advance('10s')
    await clock.advance('10s')
    expect(told).toEqual(['lost ta', 'cancel tb', 'cancel tb'])
    expect(renewals[1]).toEqual([20_000, 'tb', 'tc'])
    expect(keeper.size).toBe(2)
    await keeper.stop()
  })

  test('is nobody’s business any more if the claim was dropped meanwhile', async () => {
    const { keeper, clock, told } = keeping({
      renew: async () => {
        keeper.drop('ta')
        return { lost: ['ta'], cancelRequested: ['ta'] }
      },
    })
    keeper.start()
    keeper.hold('a', 'ta')
    await turns(2)
    await clock.advance('10s')
    expect(told).toEqual([])
    expect(keeper.size).toBe(0)
    await keeper.stop()
  })
})

describe('overdue leases', () => {
  test('are renewed on demand, and only those', async () => {
    const { keeper, clock, renewals } = keeping()
    keeper.hold('old', 'old')
    await clock.advance('29s')
    await keeper.renewOverdue()
    keeper.hold('young', 'young')
    await clock.advance('1s')
    await keeper.renewOverdue()
    expect(renewals).toEqual([[30_000, 'old']])
  })
})

describe('the lease thread', () => {
  function threaded() {
    const calls: string[] = []
    const given: LeaseThreadOptions[] = []
    const tokens = (claims: readonly HeldClaim[]) => claims.map(({ token }) => token).join()
    const setup = keeping({
      leaseThread: (options) => {
        given.push(options)
        return {
          hold: (claims) => void calls.push(`hold ${tokens(claims)}`),
          drop: (dropped) => void calls.push(`drop ${dropped.join()}`),
          stop: async () => void calls.push('stop'),
        }
      },
    })
    const options = (): LeaseThreadOptions => {
      const [first] = given
      if (first === undefined) throw new Error('the thread was not started')
      return first
    }
    return { ...setup, calls, options }
  }

  test('does the renewing, from the call of hold on', async () => {
    const { keeper, clock, renewals, calls, options, told } = threaded()
    keeper.hold('a', 'ta')
    keeper.start()
    keeper.hold('b', 'tb')
    keeper.hold('c', 'tc')
    keeper.drop('ta')
    await turns(2)
    await clock.advance('25s')
    expect(renewals).toEqual([])
    options().onRenewed({ lost: ['tb'], cancelRequested: ['tc'] })
    expect(told).toEqual(['lost tb', 'cancel tc'])
    await keeper.stop()
    expect(calls).toEqual(['hold ta', 'hold tb', 'hold tc', 'drop ta', 'drop tb', 'stop'])
    options().onRenewed({ lost: ['tc'], cancelRequested: [] })
    expect(told.length).toBe(2)
  })

  test('is replaced by this thread when it can’t be started', async () => {
    const { keeper, clock, renewals, failures } = keeping({
      leaseThread: () => {
        throw new Error('no more threads')
      },
    })
    keeper.start()
    keeper.hold('a', 'ta')
    await turns(2)
    await clock.advance('10s')
    expect(renewals).toEqual([[10_000, 'ta']])
    expect(failures).toMatchObject([{ service: 'lease-keeper', error: { message: 'no more threads' } }])
    await keeper.stop()
  })

  test('is replaced by this thread when it fails', async () => {
    const { keeper, clock, renewals, options, failures } = threaded()
    keeper.start()
    keeper.hold('a', 'ta')
    await turns(2)
    await clock.advance('9s')
    options().onFailed(new Error('thread is gone'))
    await until(() => renewals.length === 1)
    expect(renewals).toEqual([[9_000, 'ta']])
    expect(failures).toMatchObject([{ service: 'lease-keeper', error: { message: 'thread is gone' } }])
    await clock.advance('10s')
    expect(renewals.length).toBe(2)
    await keeper.stop()
  })
})

test('start and stop settle in any interleaving and leave no timer', async () => {
  const { keeper, clock, renewals } = keeping()
  keeper.hold('a', 'ta')
  const stops: Promise<void>[] = []
  for (let count = 0; count < 100; count += 1) {
    keeper.start()
    stops.push(keeper.stop())
  }
  await Promise.all(stops)
  renewals.length = 0
  await clock.advance('1h')
  expect(renewals).toEqual([])
})
