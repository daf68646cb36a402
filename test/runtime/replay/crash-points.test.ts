import { expect, it } from 'vitest'
import { faults } from './crash-points.ts'

const CORPUS = Array.from({ length: 200 }, (_, index) => index + 1)
const FRESH = Array.from({ length: 100 }, () => Math.floor(Math.random() * 2 ** 31))
const AT_ONCE = 6

async function faultsOfAll(seeds: readonly number[]): Promise<readonly string[]> {
  const found: string[] = []
  const left = [...seeds]
  const worker = async (): Promise<void> => {
    for (let seed = left.pop(); seed !== undefined; seed = left.pop()) found.push(...(await faults(seed)))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return found
}

it('W4, W12, G-01, G-02: 200 workflows replay the same from every crash point', { timeout: 120_000 }, async () => {
  expect(await faultsOfAll(CORPUS)).toEqual([])
})

it('100 workflows with fresh seeds replay the same from every crash point', { timeout: 120_000 }, async () => {
  expect(await faultsOfAll(FRESH)).toEqual([])
})
