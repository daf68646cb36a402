/** A file that is moved, deleted or replaced under an open store: nothing is acknowledged that nobody could read. */
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '../../../src/core/errors.ts'
import { freshPath, openStore } from './files.ts'
import { enqueue, newRun } from './requests.ts'

describe('an open file that is', () => {
  it('moved takes nothing until it is back, and has lost nothing then', async () => {
    const path = freshPath()
    const store = await openStore(path)
    await enqueue(store, newRun('before'))
    renameSync(path, `${path}.moved`)
    await expect(enqueue(store, newRun('between'))).rejects.toThrow(StoreUnavailableError)
    await expect(enqueue(store, newRun('between'))).rejects.toThrow(/moved, deleted or replaced/)
    expect(existsSync(path)).toBe(false)
    renameSync(`${path}.moved`, path)
    await enqueue(store, newRun('after'))
    const runs = await store.runs(['before', 'between', 'after'])
    expect(runs.map((run) => run?.id)).toEqual(['before', undefined, 'after'])
  })

  it('replaced by another takes nothing', async () => {
    const path = freshPath()
    const store = await openStore(path)
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
    await expect(enqueue(store, newRun('a'))).rejects.toThrow(StoreUnavailableError)
  })

  it('deleted with its directory takes nothing', async () => {
    const path = freshPath()
    const store = await openStore(path)
    rmSync(dirname(path), { recursive: true })
    await expect(enqueue(store, newRun('a'))).rejects.toThrow(StoreUnavailableError)
    mkdirSync(dirname(path))
  })
})
