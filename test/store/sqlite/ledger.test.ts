/** The ledger of starts doesn't grow with every key that a partitioned queue has ever seen. */
import { expect, it } from 'vitest'
import { ManualClock } from '../../../src/store/conformance/manual-clock.ts'
import { connect, freshPath, openStore } from './files.ts'
import { enqueue, newClaim, newQueue, newRun } from './requests.ts'

const HOUR_MS = 3_600_000
const FEW = 40

it('ledgers of keys that nothing has started under for a day go, while others start', async () => {
  const path = freshPath()
  const clock = new ManualClock()
  const store = await openStore(path, clock)
  await store.registerQueues([newQueue('q', { partitioned: true, rateLimit: { limit: 2, periodMs: 1_000 } })])
  const startUnder = async (prefix: string, count = FEW): Promise<void> => {
    const keys = Array.from({ length: count }, (_, n) => `${prefix}${n}`)
    await enqueue(store, ...keys.map((key) => newRun(`${key} at ${clock.now()}`, { queue: 'q', partitionKey: key })))
    const { runs } = await store.claim(
      newClaim(
        keys.map((key) => `${key} at ${clock.now()}`),
        { queue: 'q' },
      ),
    )
    expect(runs).toHaveLength(count)
  }
  await startUnder('old ')
  clock.pass(23 * HOUR_MS)
  await startUnder('young ')
  clock.pass(2 * HOUR_MS)
  await startUnder('new ', 3 * FEW)

  const other = await connect(path)
  const rows = other.prepare(`select substr(lane, 1, 3), count(*) from perdure_starts group by 1 order by 1`).all()
  other.close()
  expect(rows.map((row) => [...row])).toEqual([
    ['new', 3 * FEW],
    ['you', FEW],
  ])
})
