import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { realClock } from '../../src/core/clock.ts'
import { realScheduler } from '../../src/core/scheduler.ts'

const DAY_MS = 86_400_000

describe('the real clock', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
  afterEach(() => void vi.useRealTimers())

  test.each([30 * DAY_MS, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 400 * DAY_MS])(
    'B-01: a timer of %d ms fires once, at its instant, without a warning or a spin',
    async (delay) => {
      const warnings = vi.spyOn(process, 'emitWarning')
      const armed = vi.spyOn(globalThis, 'setTimeout')
      let fired = 0
      realClock.at(Date.now() + delay, () => {
        fired += 1
      })
      await vi.advanceTimersByTimeAsync(delay - 1)
      expect(fired).toBe(0)
      await vi.advanceTimersByTimeAsync(1)
      expect(fired).toBe(1)
      expect(armed.mock.calls.length).toBeLessThanOrEqual(Math.ceil(delay / (2 ** 31 - 1)) + 1)
      expect(warnings).not.toHaveBeenCalled()
    },
  )

  test('a timer that was called off in a later stage does not fire', async () => {
    let fired = 0
    const timer = realClock.at(Date.now() + 60 * DAY_MS, () => {
      fired += 1
    })
    await vi.advanceTimersByTimeAsync(40 * DAY_MS)
    timer.cancel()
    timer.cancel()
    await vi.advanceTimersByTimeAsync(40 * DAY_MS)
    expect(fired).toBe(0)
  })

  test('a clock that was set back makes no timer early', async () => {
    let fired = 0
    realClock.at(Date.now() + 1_000, () => {
      fired += 1
    })
    vi.setSystemTime(Date.now() - 500)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(fired).toBe(0)
    await vi.advanceTimersByTimeAsync(500)
    expect(fired).toBe(1)
  })

  test('an instant in the past fires, but not synchronously', async () => {
    let fired = 0
    realClock.at(Date.now() - 5, () => {
      fired += 1
    })
    expect(fired).toBe(0)
    await vi.advanceTimersByTimeAsync(0)
    expect(fired).toBe(1)
  })
})

describe('the real scheduler', () => {
  test('a turn comes after all microtasks queued so far, however long their chain', async () => {
    let steps = 0
    const chain = async (): Promise<void> => {
      for (let step = 0; step < 1_000; step += 1) {
        await Promise.resolve()
        steps += 1
      }
    }
    void chain()
    await realScheduler.turn()
    expect(steps).toBe(1_000)
  })
})
