/** Limits under real races: several processes claim from one schema at once (Q14, C-01, C-05). */

import { expect, it } from 'vitest'
import { durableServer, FULL, freshSpec } from './postgres-server.ts'
import { claimsOf, startsOf } from './queue-claims.ts'
import { testLimits } from './queue-limits.ts'
import { queuePlace } from './queue-place.ts'
import { specOf } from './store-spec.ts'

const server = await durableServer()

testLimits(
  () => queuePlace(specOf(freshSpec(server))),
  FULL ? { waiting: 10_000, few: 60, many: 200, serial: false } : { waiting: 2_000, few: 25, many: 60, serial: false },
)

it('the ledger of a rate limit has the instants of the claims, which is what the limit promises', async () => {
  const RUNS = 40
  const spec = freshSpec(server)
  const here = queuePlace(specOf(spec))
  await here.worker({ queues: { metered: { rateLimiter: { limit: RUNS, period: 60_000 }, maxTasksPerIteration: 2 } } })
  const runs = Array.from({ length: RUNS }, (_, n) => ({
    input: { ms: 0 },
    options: { queue: 'metered', id: `metered.${n}` },
  }))
  await here.client.startMany('task', runs)
  await here.drained(['metered'])
  const rows = await server.sql(`select started_at::text from "${spec.schema}".starts order by started_at`)
  const ledger = rows.map((row) => Number(row['started_at']))
  expect(ledger).toEqual(startsOf(await claimsOf(here.client, ['metered'])))
  expect(ledger).toHaveLength(RUNS)
})
