/** Claims runs, a few at a time, until there are none left, and says which it got. */
import { StoreUnavailableError } from '../../../../src/core/errors.ts'
import type { ClaimedRun } from '../../../../src/store/contract.ts'
import { sqlite } from '../../../../src/store/sqlite/index.ts'
import { newClaim } from '../requests.ts'

const [path = '', owner = '', queue = ''] = process.argv.slice(2)
const store = sqlite(path)
await store.open()
/** As a dispatcher does, it tries again with the same tokens where the file stays locked for long. */
async function claimed(tokens: readonly string[]): Promise<readonly ClaimedRun[]> {
  for (;;) {
    try {
      return (await store.claim(newClaim(tokens, { owner, queue: queue === '' ? null : queue }))).runs
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
    }
  }
}

const ids: string[] = []
for (let round = 0; ; round++) {
  const tokens = Array.from({ length: 7 }, (_, index) => `${owner} ${round} ${index}`)
  const runs = await claimed(tokens)
  if (runs.length === 0) break
  ids.push(...runs.map(({ run }) => run.id))
}
await store.close()
process.stdout.write(`${JSON.stringify(ids)}\n`)
