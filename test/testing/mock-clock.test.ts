import { describe, expect, it } from 'vitest'
import type { TimerRank } from '../../src/core/clock.ts'
import { ConfigurationError, InvalidDurationError } from '../../src/core/errors.ts'
import { realScheduler } from '../../src/core/scheduler.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { realPause, recorded, START, Worker } from './clock-stage.ts'

describe('now', () => {
  it('stands where it was put until it is advanced', async () => {
    const clock = new MockClock(START)
    expect(clock.kind).toBe('mock')
    expect(clock.now()).toBe(START)
    await realPause(5)
    expect(clock.now()).toBe(START)
    await clock.advance('1h')
    expect(clock.now()).toBe(START + 3_600_000)
    await clock.advance(250)
    expect(clock.now()).toBe(START + 3_600_250)
  })

  it('starts at a fixed instant by default, and refuses what is none', () => {
    expect(new MockClock().now()).toBe(new MockClock().now())
    expect(() => new MockClock(Number.NaN)).toThrow(ConfigurationError)
    expect(() => new MockClock(1.5)).toThrow(ConfigurationError)
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 'soon', ''])('refuses to advance by %s', async (duration) => {
    const clock = new MockClock(START)
    await expect(clock.advance(duration)).rejects.toThrow(InvalidDurationError)
    expect(clock.now()).toBe(START)
    await clock.advance(1)
    expect(clock.now()).toBe(START + 1)
  })
})

describe('due timers', () => {
  it('fire in order of their instants, each at its own, those of one instant in arming order', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('c', START + 300)
    arm('a', START + 100)
    arm('b1', START + 200)
    arm('b2', START + 200)
    arm('later', START + 301)
    await clock.advance(300)
    expect(log).toEqual(['a@100', 'b1@200', 'b2@200', 'c@300'])
    expect(clock.now()).toBe(START + 300)
  })

  it('armed by others fire in the same advance, also for the same instant and a past one', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('a', START + 100, 'due', () => {
      arm('same', clock.now())
      arm('past', clock.now() - 50)
      arm('next', clock.now() + 100)
    })
    await clock.advance(1_000)
    expect(log).toEqual(['a@100', 'past@100', 'same@100', 'next@200'])
  })

  it('a chain that arms itself is followed to the end of the advance and no further', async () => {
    const clock = new MockClock(START)
    let fired = 0
    const again = (): void => {
      fired += 1
      clock.at(clock.now() + 1_000, again)
    }
    clock.at(START + 1_000, again)
    await clock.advance('1m')
    expect(fired).toBe(60)
    await clock.advance(999)
    expect(fired).toBe(60)
    await clock.advance(1)
    expect(fired).toBe(61)
  })

  it('one that arms itself for the same instant for ever fails the advance instead of hanging it', async () => {
    const clock = new MockClock(START)
    let looping = true
    const again = (): void => {
      if (looping) clock.at(START + 1, again)
    }
    again()
    await expect(clock.advance(10)).rejects.toThrow(/arms a timer/)
    looping = false
    await clock.advance(10)
    expect(clock.now()).toBe(START + 11)
  })

  it('cancelled ones never fire, even when the one before in the same round cancels them', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    const gone = arm('gone', START + 100)
    arm('a', START + 200, 'due', () => victim.cancel())
    const victim = arm('victim', START + 200)
    gone.cancel()
    gone.cancel()
    await clock.advance(300)
    victim.cancel()
    expect(log).toEqual(['a@200'])
  })

  it('for an instant that is here fire without an advance, never synchronously, and once', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('now', START)
    arm('past', START - 1)
    const cancelled = arm('cancelled', START)
    cancelled.cancel()
    expect(log).toEqual([])
    while (log.length < 2) await realScheduler.turn()
    await clock.advance(10)
    expect(log).toEqual(['now@0', 'past@0'])
  })

  it('armed just before an advance fire at the old instant', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('now', START)
    arm('past', START - 50)
    await clock.advance(10)
    expect(log).toEqual(['past@0', 'now@0'])
    expect(clock.now()).toBe(START + 10)
  })

  it('wait for a fraction of a millisecond to be over', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('a', START + 0.5)
    await clock.advance(0.2)
    expect(log).toEqual(['a@1'])
    expect(clock.now()).toBe(START + 1)
  })
})

describe('ranks', () => {
  it('at one instant renewals come before what is due and polls after it', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('poll', START + 50, 'poll')
    arm('due', START + 100, 'due')
    arm('renewal', START + 100, 'renewal')
    await clock.advance(100)
    expect(log).toEqual(['renewal@100', 'due@100', 'poll@100'])
  })

  it('what each rank begins is worked off before the next rank', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    const { log, arm } = recorded(clock)
    for (const rank of ['poll', 'due', 'renewal'] as const) {
      arm(rank, START + 100, rank, () => void worker.work(20, () => log.push(`${rank} done`)))
    }
    await clock.advance(100)
    expect(log).toEqual(['renewal@100', 'renewal done', 'due@100', 'due done', 'poll@100', 'poll done'])
  })

  it('only due timers make it stop: others run once where it stops and where it ends', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    const everySecond = (name: string, rank: TimerRank): void => {
      arm(name, clock.now() + 1_000, rank, () => everySecond(name, rank))
    }
    everySecond('renewal', 'renewal')
    everySecond('poll', 'poll')
    arm('due', START + 2_500)
    await clock.advance(10_000)
    expect(log).toEqual(['renewal@2500', 'due@2500', 'poll@2500', 'renewal@10000', 'poll@10000'])
  })

  it('renewals and polls for an instant that is here wait for the next advance', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('poll', START, 'poll')
    arm('renewal', START - 1, 'renewal')
    for (let turn = 0; turn < 20; turn++) await realScheduler.turn()
    expect(log).toEqual([])
    await clock.advance(0)
    expect(log).toEqual(['renewal@0', 'poll@0'])
  })

  it('one that arms itself for at once runs once at each visited instant', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    const spin = (): void => void arm('poll', clock.now(), 'poll', spin)
    spin()
    arm('due', START + 100)
    await clock.advance(100)
    expect(log).toEqual(['due@100', 'poll@100'])
    await clock.advance(50)
    expect(log).toEqual(['due@100', 'poll@100', 'poll@150'])
  })

  it('what a poll makes due at its instant is served there, without another poll', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('poll', START + 10, 'poll', () => {
      arm('found', clock.now())
      arm('poll again', clock.now(), 'poll')
    })
    await clock.advance(100)
    expect(log).toEqual(['poll@100', 'found@100'])
  })

  it('a lease renewed at its end is renewed before its expiry is looked at', async () => {
    const clock = new MockClock(START)
    let leaseUntil = START + 30_000
    const expiries: number[] = []
    const renew = (): void => {
      leaseUntil = clock.now() + 30_000
      clock.at(clock.now() + 10_000, renew, { rank: 'renewal' })
    }
    const look = (): void => {
      if (leaseUntil <= clock.now()) expiries.push(clock.now())
      else clock.at(leaseUntil, look)
    }
    clock.at(START + 10_000, renew, { rank: 'renewal' })
    clock.at(leaseUntil, look)
    await clock.advance('1h')
    expect(expiries).toEqual([])
  })
})

describe('several advances', () => {
  it('queue up, each starting where the one before ended', async () => {
    const clock = new MockClock(START)
    const worker = new Worker()
    clock.join(worker)
    const { log, arm } = recorded(clock)
    arm('a', START + 100, 'due', () => void worker.work(10))
    arm('b', START + 250)
    const ends: number[] = []
    await Promise.all([150, 150, 1].map((ms) => clock.advance(ms).then(() => ends.push(clock.now() - START))))
    expect(log).toEqual(['a@100', 'b@250'])
    expect(ends).toEqual([150, 300, 301])
  })

  it('what was due together with a callback that threw fires without another advance', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('bad', START + 100, 'due', () => {
      throw new Error('callback')
    })
    arm('good', START + 100)
    await expect(clock.advance(200)).rejects.toThrow('callback')
    while (log.length < 2) await realScheduler.turn()
    expect(log).toEqual(['bad@100', 'good@100'])
  })

  it('a callback that throws fails its advance, and the next goes on', async () => {
    const clock = new MockClock(START)
    const { log, arm } = recorded(clock)
    arm('bad', START + 100, 'due', () => {
      throw new Error('callback')
    })
    arm('good', START + 100)
    const [first, second] = await Promise.allSettled([clock.advance(200), clock.advance(200)])
    expect(first.status).toBe('rejected')
    expect(second.status).toBe('fulfilled')
    expect(log).toEqual(['bad@100', 'good@100'])
    expect(clock.now()).toBe(START + 300)
  })
})
