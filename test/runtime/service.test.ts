import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { realClock } from '../../src/core/clock.ts'
import { realRandom } from '../../src/core/random.ts'
import { type Round, Service, type ServiceFailure, type ServiceOptions } from '../../src/runtime/service.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { FastScheduler, turns, until } from './fast-scheduler.ts'

const LATER: Round = { dueAt: null, pollAfterMs: 1_000 }

/** A service whose rounds are counted; on a mock clock and a scheduler that the test moves, unless told otherwise. */
function counting(tick: (round: number) => Promise<Round> = async () => LATER, options: Partial<ServiceOptions> = {}) {
  const clock = new MockClock(1_000_000)
  const scheduler = new FastScheduler()
  scheduler.held = true
  const failures: ServiceFailure[] = []
  const seen = { rounds: 0, inFlight: 0, mostInFlight: 0 }
  const service = new Service({
    name: 'counted',
    tick: async () => {
      seen.rounds += 1
      seen.inFlight += 1
      seen.mostInFlight = Math.max(seen.mostInFlight, seen.inFlight)
      try {
        return await tick(seen.rounds)
      } finally {
        seen.inFlight -= 1
      }
    },
    clock,
    scheduler,
    random: realRandom,
    onError: (failure) => void failures.push(failure),
    ...options,
  })
  return { service, clock, scheduler, failures, seen }
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('rounds', () => {
  test('one at start, then one per poll interval', async () => {
    const { service, clock, seen } = counting()
    service.start()
    service.start()
    await until(() => seen.rounds === 1)
    await clock.advance(999)
    expect(seen.rounds).toBe(1)
    await clock.advance(1)
    expect(seen.rounds).toBe(2)
    await service.stop()
    await clock.advance('1h')
    expect(seen.rounds).toBe(2)
  })

  test('one at the due instant', async () => {
    const dueAt = 1_000_400
    const { service, clock, seen } = counting(async (round) => ({
      dueAt: round === 1 ? dueAt : null,
      pollAfterMs: 9e9,
    }))
    service.start()
    await until(() => seen.rounds === 1)
    await clock.advance(399)
    expect(seen.rounds).toBe(1)
    await clock.advance(1)
    await until(() => seen.rounds === 2)
    await service.stop()
  })

  test('again at once for an instant that is here', async () => {
    const { service, clock, seen } = counting(async (round) => ({
      dueAt: round < 4 ? clock.now() : null,
      pollAfterMs: 1,
    }))
    service.start()
    await until(() => seen.rounds === 4)
    await turns(5)
    expect(seen.rounds).toBe(4)
    await service.stop()
  })

  test('polls in real time on a real clock, which may be set back', async () => {
    const { service, scheduler, seen } = counting(undefined, { clock: realClock })
    service.start()
    await until(() => scheduler.armed === 1)
    scheduler.pass(1_000)
    await until(() => seen.rounds === 2)
    await service.stop()
    expect(scheduler.armed, 'no timer left').toBe(0)
  })
})

describe('wake-ups', () => {
  test('of one turn share a round', async () => {
    const { service, seen } = counting()
    service.start()
    for (let count = 0; count < 100; count += 1) service.wake()
    await turns(5)
    expect(seen.rounds).toBe(1)
    await service.stop()
  })

  test('during a round are followed by exactly one more', async () => {
    const { opened, open } = gate()
    const { service, seen } = counting(async () => {
      await opened
      return LATER
    })
    service.start()
    await until(() => seen.rounds === 1)
    for (let count = 0; count < 100; count += 1) service.wake()
    open()
    await turns(5)
    expect(seen).toEqual({ rounds: 2, inFlight: 0, mostInFlight: 1 })
    await service.stop()
  })

  test('of a service that is not started do nothing', async () => {
    const { service, seen } = counting()
    service.wake()
    await turns(3)
    expect(seen.rounds).toBe(0)
    expect(service.busy()).toBe(false)
  })
})

describe('failures', () => {
  test('are backed off, told once a period, and end with the first round that succeeds', async () => {
    const broken = async (round: number): Promise<Round> => {
      if (round <= 12) throw new Error(`round ${round}`)
      return LATER
    }
    const { service, scheduler, failures, seen } = counting(broken, { errorDelay: { baseMs: 100, maxMs: 8_000 } })
    scheduler.held = false
    service.start()
    await until(() => seen.rounds === 13)
    await turns(2)
    expect(scheduler.delays.length).toBe(12)
    expect(scheduler.delays[0]).toBeLessThanOrEqual(120)
    expect(scheduler.delays[3]).toBeGreaterThan(scheduler.delays[0] ?? 0)
    expect(Math.max(...scheduler.delays)).toBeLessThanOrEqual(8_000)
    expect(failures[0]).toMatchObject({ service: 'counted', error: { message: 'round 1' } })
    expect(failures.length).toBeGreaterThan(1)
    expect(failures.length).toBeLessThanOrEqual(1 + Math.floor(scheduler.monotonic() / 30_000))
    await service.stop()
  })

  test('make wake-ups wait for the backoff', async () => {
    const { service, scheduler, seen } = counting(async (round) => {
      if (round === 1) throw new Error('once')
      return LATER
    })
    service.start()
    await until(() => scheduler.armed === 1)
    for (let count = 0; count < 10; count += 1) service.wake()
    await turns(5)
    expect(seen.rounds).toBe(1)
    scheduler.pass(2_000)
    await until(() => seen.rounds === 2)
    await service.stop()
  })

  test('thrown at once, or by the listener, stop nothing', async () => {
    const onError = (): void => {
      throw new Error('listener')
    }
    const tick = (): Promise<Round> => {
      throw new Error('at once')
    }
    const { service, scheduler } = counting(undefined, { tick, onError })
    service.start()
    await until(() => scheduler.armed === 1)
    await service.stop()
    expect(scheduler.armed).toBe(0)
  })
})

describe('start, stop and tick', () => {
  test('settle a hundred times over without being awaited', async () => {
    const { service, clock, seen } = counting(async () => {
      await turns(1)
      return LATER
    })
    const stops: Promise<void>[] = []
    for (let count = 0; count < 100; count += 1) {
      service.start()
      stops.push(service.stop())
      if (count % 7 === 0) await turns(1)
    }
    await Promise.all(stops)
    const rounds = seen.rounds
    await clock.advance('1h')
    expect(seen).toEqual({ rounds, inFlight: 0, mostInFlight: Math.min(rounds, 1) })
    expect(service.busy()).toBe(false)
  })

  test('stop waits for the round under way; a start meanwhile gets its round', async () => {
    const { opened, open } = gate()
    const { service, seen } = counting(async (round) => {
      if (round === 1) await opened
      return LATER
    })
    service.start()
    await until(() => seen.rounds === 1)
    let stopped = false
    const stop = service.stop().then(() => {
      stopped = true
    })
    await turns(3)
    expect(stopped).toBe(false)
    service.start()
    open()
    await stop
    await until(() => seen.rounds === 2)
    await service.stop()
    expect(seen.mostInFlight).toBe(1)
  })

  test('a round that ends after stop arms nothing, whether it succeeds or fails', async () => {
    for (const fails of [false, true]) {
      const { opened, open } = gate()
      const tick = async (): Promise<Round> => {
        await opened
        if (fails) throw new Error('late')
        return LATER
      }
      const { service, scheduler, seen } = counting(tick, { clock: realClock })
      service.start()
      await until(() => seen.rounds === 1)
      const stopped = service.stop()
      open()
      await stopped
      expect(scheduler.armed).toBe(0)
    }
  })

  test('tick runs one round, started or not, never beside another, and tells its failure', async () => {
    const { service, seen } = counting(async (round) => {
      await turns(2)
      if (round === 3) throw new Error('third')
      return LATER
    })
    expect(await Promise.all([service.tick(), service.tick()])).toEqual([LATER, LATER])
    await expect(service.tick()).rejects.toThrow('third')
    expect(seen).toEqual({ rounds: 3, inFlight: 0, mostInFlight: 1 })
  })

  test('a round keeps no caller’s async context', async () => {
    const context = new AsyncLocalStorage<string>()
    const contexts: (string | undefined)[] = []
    const { service, clock } = counting(async () => {
      contexts.push(context.getStore())
      return LATER
    })
    context.run('caller', () => service.start())
    await until(() => contexts.length === 1)
    await clock.advance(1_000)
    await context.run('caller', () => service.tick())
    context.run('caller', () => service.wake())
    await until(() => contexts.length === 4)
    expect(contexts).toEqual([undefined, undefined, undefined, undefined])
    await service.stop()
  })

  test('busy and activity tell of rounds', async () => {
    const { opened, open } = gate()
    const { service } = counting(async () => {
      await opened
      return LATER
    })
    expect(service.busy()).toBe(false)
    service.start()
    expect(service.busy()).toBe(true)
    await turns(2)
    const during = service.activity()
    expect(service.busy()).toBe(true)
    open()
    await turns(1)
    expect(service.busy()).toBe(false)
    expect(service.activity()).toBeGreaterThan(during)
    await service.stop()
  })
})
