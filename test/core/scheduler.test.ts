import { describe, expect, test } from 'vitest'
import { realScheduler } from '../../src/core/scheduler.ts'

describe('turns of the event loop', () => {
  test('come when every microtask has run, also for who asks late', async () => {
    const seen: string[] = []
    const early = realScheduler.turn().then(() => seen.push('turn'))
    const late = Promise.resolve()
      .then(() => {})
      .then(() => realScheduler.turn())
      .then(() => seen.push('turn'))
    void Promise.resolve()
      .then(() => {})
      .then(() => {})
      .then(() => {})
      .then(() => seen.push('microtask'))
    await Promise.all([early, late])
    expect(seen).toEqual(['microtask', 'turn', 'turn'])
  })

  test('are one after the other for who asks for one in another', async () => {
    await realScheduler.turn()
    let immediate = false
    setImmediate(() => {
      immediate = true
    })
    await realScheduler.turn()
    expect(immediate).toBe(true)
  })
})
