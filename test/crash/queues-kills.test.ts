/** Three workers and a producer on one file, killed at 60 random moments; then what they did is held against the limits. */
import { it } from 'vitest'
import { expectSurvival } from './queue-kills.ts'
import { queuePlace } from './queue-place.ts'

const KILLS = 60

it(`${KILLS} SIGKILLs of three workers and their producer: each run is done, and no limit is ever exceeded (P1-P6)`, async () => {
  await expectSurvival(queuePlace(), { kills: KILLS, workers: 3, runs: 3_000 })
}, 180_000)
