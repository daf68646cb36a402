/** Workflows that sleep cost no memory, however many they are. */
import { expect, it } from 'vitest'
import { place } from './place.ts'
import { startProgram } from './queue-children.ts'
import type { Slept } from './queue-sleepers.ts'

const WARM_UP = 2_000
const SLEEPERS = 20_000
const MB = 1_000_000

it(`${SLEEPERS} workflows asleep for a day: the process does not grow, and all wake`, async () => {
  const { store } = place()
  const child = startProgram('sleepers', store, String(WARM_UP), String(SLEEPERS))
  const line = await child.says('slept ')
  const { asleep, woken, heapGrowth, rssGrowth, wakingMs }: Slept = JSON.parse(line.slice('slept '.length))
  console.log(
    `heap ${(heapGrowth / MB).toFixed(1)} MB, resident ${(rssGrowth / MB).toFixed(1)} MB more; ` +
      `all woke within ${Math.round(wakingMs)} ms`,
  )
  expect([asleep, woken]).toEqual([WARM_UP + SLEEPERS, WARM_UP + SLEEPERS])
  expect(heapGrowth).toBeLessThan(5 * MB)
  expect(rssGrowth).toBeLessThan(40 * MB)
  expect(await child.ended).toEqual({ code: 0, signal: null })
})
