/** No run is left behind that is enqueued while a worker in another process finds its queue empty. */
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { place } from './place.ts'
import { closeStarts, latencyAt, race, tell } from './queue-races.ts'

const FILES = 20
const RACES_EACH = 500
/** How often a dispatcher looks by itself. */
const POLL_MS = 1_000

it(`${FILES * RACES_EACH} races of enqueueing against finding nothing: none is left behind, none is found by a poll (C-08)`, async () => {
  const folder = dirname(place().log)
  const specs = Array.from({ length: FILES }, (_, n) => join(folder, `${n}.db`))
  const races = await race({ specs, racesEach: RACES_EACH, patience: 'patient' })
  tell(races)
  // Polls don't come here: the producer fails if a run stands still. With them it would be found after half of this.
  expect(latencyAt(races, 0.5)).toBeLessThan(POLL_MS / 2)
  const { before, after } = closeStarts(races)
  expect(Math.min(before, after)).toBeGreaterThan((FILES * RACES_EACH) / 50)
}, 240_000)
