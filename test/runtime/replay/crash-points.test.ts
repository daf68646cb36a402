import { expect, it } from 'vitest'
import { faults } from './crash-points.ts'

const CORPUS = Array.from({ length: 200 }, (_, index) => index + 1)
const FRESH = Array.from({ length: 100 }, () => Math.floor(Math.random() * 2 ** 31))
const AT_ONCE = 6

async function faultsOfAll(seeds: readonly number[], company: 'alone' | 'among others'): Promise<readonly string[]> {
  const found: string[] = []
  const left = [...seeds]
  const worker = async (): Promise<void> => {
    for (let seed = left.pop(); seed !== undefined; seed = left.pop()) found.push(...(await faults(seed, company)))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return found
}

it('W4, W12, G-01, G-02: 200 workflows replay the same from every crash point', { timeout: 120_000 }, async () => {
  expect(await faultsOfAll(CORPUS, 'alone')).toEqual([])
})

it('100 workflows with fresh seeds replay the same from every crash point', { timeout: 120_000 }, async () => {
  expect(await faultsOfAll(FRESH, 'alone')).toEqual([])
})

it('W33, W34: 30 workflows that deal with others, and 15 with fresh seeds, do so once from every crash point', {
  timeout: 240_000,
}, async () => {
  expect(await faultsOfAll([...CORPUS.slice(0, 30), ...FRESH.slice(0, 15)], 'among others')).toEqual([])
})
