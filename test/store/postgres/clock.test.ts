/** The database's clock, as a process keeps it. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DatabaseClock } from '../../../src/store/postgres/clock.ts'

const START = 1_000_000

describe('the clock of a database', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: START, toFake: ['Date', 'setTimeout', 'clearTimeout', 'performance'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is ten minutes ahead of this host if the database is', () => {
    const clock = new DatabaseClock()
    expect(clock.now()).toBe(START)
    clock.measured(START + 600_000)
    expect(clock.now()).toBe(START + 600_000)
    vi.advanceTimersByTime(5)
    expect(clock.now()).toBe(START + 600_005)
  })

  it('believes an answer that was fast rather than one that came late', () => {
    const clock = new DatabaseClock()
    clock.measured(START + 100)
    clock.measured(START + 40)
    expect(clock.now()).toBe(START + 100)
    clock.measured(START + 110)
    expect(clock.now()).toBe(START + 110)
  })

  it('follows a clock that is slower, and at once one that was set back', () => {
    const clock = new DatabaseClock()
    clock.measured(START + 100)
    vi.advanceTimersByTime(10_000)
    clock.measured(START + 10_040)
    expect(clock.now()).toBe(START + 10_040)
    clock.measured(START + 10_000 - 3_600_000)
    expect(clock.now()).toBe(START + 10_000 - 3_600_000)
  })

  it('calls back when the instant has come by the database', () => {
    const clock = new DatabaseClock()
    clock.measured(START + 600_000)
    const due = vi.fn()
    clock.at(START + 601_000, due)
    vi.advanceTimersByTime(999)
    expect(due).not.toHaveBeenCalled()
    vi.advanceTimersByTime(2)
    expect(due).toHaveBeenCalledOnce()
  })

  it('calls back at once for what is past, and never when called off', () => {
    const clock = new DatabaseClock()
    const [due, off] = [vi.fn(), vi.fn()]
    clock.at(START - 1, due)
    clock.at(START + 5, off).cancel()
    expect(due).not.toHaveBeenCalled()
    vi.advanceTimersByTime(60_000)
    expect([due.mock.calls.length, off.mock.calls.length]).toEqual([1, 0])
  })

  it('hears of a changed clock while a timer runs', () => {
    const clock = new DatabaseClock()
    const due = vi.fn()
    clock.at(START + 3_600_000, due)
    clock.measured(START + 3_599_000)
    vi.advanceTimersByTime(30_001)
    expect(due).toHaveBeenCalledOnce()
  })
})
