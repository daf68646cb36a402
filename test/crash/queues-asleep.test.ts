/** Workflows that sleep cost no memory, however many they are. */
import { expect, it } from 'vitest'
import { place } from './place.ts'
import { startProgram } from './queue-children.ts'
import type { Slept } from './queue-sleepers.ts'

const WARM_UP = 2_000
/** 100,000 take 30 s; set PERDURE_SLEEPERS for them. `npm test` runs a fifth, and holds it to as much less. */
const SLEEPERS = Number(process.env['PERDURE_SLEEPERS'] ?? 20_000)
const SHARE = SLEEPERS / 100_000
const MB = 1_000_000
/** The V8 of Node 24 keeps heap pages that have become empty, some 200 MB of them, whatever the process does. */
const EMPTY_PAGES_MB = process.version.startsWith('v20.') ? 0 : 250

it(`${SLEEPERS} workflows asleep for a day: the process does not grow, and all wake`, {
  timeout: 300_000,
}, async () => {
  const { store } = place()
  const child = startProgram('sleepers', store, String(WARM_UP), String(SLEEPERS))
  const line = await child.says('slept ')
  const { asleep, woken, heapGrowth, rssGrowth, wakingMs }: Slept = JSON.parse(line.slice('slept '.length))
  console.log(
    `heap ${(heapGrowth / MB).toFixed(1)} MB, resident ${(rssGrowth / MB).toFixed(1)} MB more; ` +
      `all woke within ${Math.round(wakingMs)} ms`,
  )
  expect([asleep, woken]).toEqual([WARM_UP + SLEEPERS, WARM_UP + SLEEPERS])
  // At 100,000: 5 MB and 40 MB. What is no fifth at a fifth are caches, and pages that the collector has not given back.
  expect(heapGrowth).toBeLessThan((1 + 4 * SHARE) * MB)
  expect(rssGrowth).toBeLessThan((10 + 30 * SHARE + EMPTY_PAGES_MB) * MB)
  expect(await child.ended).toEqual({ code: 0, signal: null })
})
