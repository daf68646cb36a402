/** Other connections: their locks are waited for without blocking the event loop, their changes are noticed. */
import { describe, expect, it } from 'vitest'
import { StoreCorruptError, StoreUnavailableError } from '../../../src/core/errors.ts'
import { realScheduler } from '../../../src/core/scheduler.ts'
import type { Driver } from '../../../src/store/sqlite/driver.ts'
import { explained } from '../../../src/store/sqlite/trouble.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newRun } from './requests.ts'

describe('the write lock', () => {
  it('is waited for while the event loop turns', async () => {
    const path = freshPath()
    const store = await openStore(path)
    const other = await connect(path)
    other.exec('begin immediate')
    let settled = false
    const enqueued = enqueue(store, newRun('a')).then(() => {
      settled = true
    })
    for (let turn = 0; turn < 100; turn++) await realScheduler.turn()
    expect(settled).toBe(false)
    expect(await store.runs(['a'])).toEqual([undefined])
    other.exec('rollback')
    await enqueued
    other.close()
    expect((await store.runs(['a']))[0]?.status).toBe('ENQUEUED')
  })

  it('that is not given back makes the store unavailable, and nothing is stored', async () => {
    const path = freshPath()
    const store = await openStore(path)
    const other = await connect(path)
    other.exec('begin immediate')
    await expect(enqueue(store, newRun('a'))).rejects.toBeInstanceOf(StoreUnavailableError)
    other.exec('rollback')
    other.close()
    expect(await store.runs(['a'])).toEqual([undefined])
  })

  it('is not taken by a claim or a reclaim that finds nothing', async () => {
    const path = freshPath()
    const store = await openStore(path)
    await enqueue(store, newRun('a', { definition: 'other' }))
    const other = await connect(path)
    other.exec('begin immediate')
    expect(await store.claim(newClaim(['t1', 't2']))).toEqual({ runs: [], nextAt: null })
    expect(await store.reclaim({ deadOwners: ['dead'], limit: 10 })).toEqual({ runs: [], rippled: false })
    other.close()
  })
})

describe('a refused command', () => {
  it('takes its whole batch with it', async () => {
    const store = await openStore(freshPath())
    const good = { type: 'enqueue', commandId: 'c1', runs: [newRun('a')] } as const
    const bad = { type: 'enqueue', commandId: 'c2', runs: [newRun('b', { maxRecoveries: Number.NaN })] } as const
    await expect(store.commit([good, bad])).rejects.toThrow(/maxRecoveries/)
    expect(await store.runs(['a', 'b'])).toEqual([undefined, undefined])
    expect(await store.commit([good])).toHaveLength(1)
  })
})

describe('errors of SQLite', () => {
  const driver: Driver = {
    name: 'node:sqlite',
    connect: () => {
      throw new Error('never called')
    },
    resultCode: (error) => (error instanceof Error ? Number(error.message) : undefined),
  }
  it.each<[number, typeof StoreUnavailableError | typeof StoreCorruptError, string]>([
    [5, StoreUnavailableError, 'busy'],
    [8, StoreUnavailableError, 'read-only'],
    [10, StoreUnavailableError, 'input or output'],
    [13, StoreUnavailableError, 'disk full (E-18)'],
    [11, StoreCorruptError, 'corrupt'],
    [26, StoreCorruptError, 'not a database'],
  ])('%i is %o: %s', (code, type, _) => {
    const cause = new Error(String(code))
    const error = explained(driver, 'sqlite', cause)
    expect(error).toBeInstanceOf(type)
    expect(error).toMatchObject({ cause })
  })

  it('others are left alone, so that the caller finds the command', () => {
    const error = new Error('19')
    expect(explained(driver, 'sqlite', error)).toBe(error)
  })

  it('that the database itself raises take the whole batch back, and the next one works', async () => {
    const path = freshPath()
    const store = await openStore(path)
    const other = await connect(path)
    other.exec(`create trigger refuse before insert on perdure_runs when new.input = '"bad"'
      begin select raise(abort, 'refused'); end`)
    const bad = newRun('bad', { input: '"bad"' })
    await expect(enqueue(store, newRun('good'), bad)).rejects.toThrow('refused')
    expect(await store.runs(['good', 'bad'])).toEqual([undefined, undefined])
    other.exec('drop trigger refuse')
    other.close()
    await enqueue(store, newRun('good'), bad)
    expect((await store.inputs(['bad']))[0]).toBe('"bad"')
  })
})

describe('watch', () => {
  it('tells of changes by others, not of its own', async () => {
    const path = freshPath()
    const store = await openStore(path)
    const other = await openStore(path)
    let calls = 0
    let stop = (): void => {}
    await new Promise<void>((resolve, reject) => {
      stop = store.watch(() => {
        calls += 1
        resolve()
      })
      enqueue(store, newRun('own'))
        .then(() => enqueue(other, newRun('theirs')))
        .catch(reject)
    })
    expect(calls).toBe(1)
    stop()
  })
})
