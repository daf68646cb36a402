/** Limits under real races: several processes claim from one file at once (Q14, C-01, C-05). */
import { testLimits } from './queue-limits.ts'
import { queuePlace } from './queue-place.ts'

testLimits(() => queuePlace(), { waiting: 10_000, few: 60, many: 200, serial: true })
