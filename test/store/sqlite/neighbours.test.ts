/** Several connections of one process to one file, and the locks that they share. */
import { readFileSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { freshPath, openStore } from './files.ts'
import { enqueue, newRun } from './requests.ts'

/** Locks that this process has on the file, as the kernel tells. */
function locksOn(path: string): number {
  const { ino } = statSync(path)
  const lines = readFileSync('/proc/locks', 'utf8').split('\n')
  return lines.filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `)).length
}

describe('a second store object on a file', () => {
  it.runIf(process.platform === 'linux')('drops no lock of the first, when it opens or closes', async () => {
    const path = freshPath()
    const first = await openStore(path)
    await enqueue(first, newRun('a'))
    const before = locksOn(path)
    expect(before).toBeGreaterThan(0)
    const second = sqlite(path)
    await second.open()
    expect(locksOn(path)).toBe(before)
    await second.close()
    expect(locksOn(path)).toBe(before)
  })
})
