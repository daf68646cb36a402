import { expect, it, vi } from 'vitest'
import type { EngineEvent } from '../../src/core/engine-events.ts'
import { Emitter } from '../../src/core/events.ts'
import { harmless, logEvents, silent } from '../../src/observe/log.ts'

const event: EngineEvent = { type: 'store.recovered', store: 'memory', doing: 'commit' }

it('an event is one line for each logger, however many engines and clients share it', () => {
  const events = new Emitter<EngineEvent>()
  const [shared, other] = [vi.fn(), vi.fn()]
  const logger = { ...silent, warn: shared }
  const stops = [logger, logger, { ...silent, warn: other }].map((each) => logEvents(events, harmless(each)))
  events.emit(event)
  expect([shared.mock.calls.length, other.mock.calls.length]).toEqual([1, 1])

  stops[0]?.()
  stops[0]?.()
  events.emit(event)
  expect(shared).toHaveBeenCalledTimes(2)

  for (const stop of stops) stop()
  events.emit(event)
  expect(shared).toHaveBeenCalledTimes(2)
  expect(events.size).toBe(0)
})
