/** Claims runs, a few at a time, until there are none left, and says which it got. */
import { sqlite } from '../../../../src/store/sqlite/index.ts'

const [path = '', owner = ''] = process.argv.slice(2)
const store = sqlite(path)
await store.open()
const ids: string[] = []
for (let round = 0; ; round++) {
  const tokens = Array.from({ length: 7 }, (_, index) => `${owner} ${round} ${index}`)
  const claimed = await store.claim({ owner, tokens, leaseMs: 600_000, definitions: ['convert'] })
  if (claimed.length === 0) break
  ids.push(...claimed.map(({ run }) => run.id))
}
await store.close()
process.stdout.write(`${JSON.stringify(ids)}\n`)
