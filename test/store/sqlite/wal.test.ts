/** The write-ahead log is cut back when the reader that made it grow has gone (E-17). */
import { statSync } from 'node:fs'
import { expect, it } from 'vitest'
import { realScheduler } from '../../../src/core/scheduler.ts'
import { LARGEST_WAL_BYTES } from '../../../src/store/sqlite/wal.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newRun } from './requests.ts'

it('grows under a long reader, and is cut back after it', async () => {
  const path = freshPath()
  const store = await openStore(path)
  await enqueue(store, newRun('first'))
  const walBytes = (): number => statSync(`${path}-wal`).size
  const reader = await connect(path)
  reader.exec('begin; select * from perdure_runs')
  const input = `"${'x'.repeat(8 * 1024 * 1024)}"`
  for (let index = 0; walBytes() <= LARGEST_WAL_BYTES; index++) await enqueue(store, newRun(`run ${index}`, { input }))
  reader.exec('commit')
  reader.close()
  const owner = { owner: 'o', host: 'h', pid: 1, pidStart: null, bootId: null, pidNamespace: null }
  const process = { ...owner, definitions: [], queues: [], version: null }
  // SQLite itself may be first, and cut it to the limit.
  while (walBytes() > LARGEST_WAL_BYTES) {
    await store.registerProcess(process)
    await realScheduler.turn()
  }
  expect((await store.list({ limit: 100 })).length).toBeGreaterThan(8)
})
