/** Workers and a producer on one schema, killed at random moments; then what they did is held against the limits. */
import { expect, it } from 'vitest'
import { Pooler } from '../store/postgres/pooler.ts'
import { durableServer, FULL, freshSpec } from './postgres-server.ts'
import { expectSurvival } from './queue-kills.ts'
import { queuePlace } from './queue-place.ts'
import { specOf } from './store-spec.ts'

const server = await durableServer()
const MASSACRE = FULL ? { kills: 60, workers: 4, runs: 3_000 } : { kills: 16, workers: 4, runs: 400 }
const POOLED = FULL ? { kills: 30, workers: 3, runs: 1_000 } : { kills: 8, workers: 3, runs: 200 }

it(`${MASSACRE.kills} SIGKILLs of four workers and their producer: each run is done, and no limit is ever exceeded`, async () => {
  await expectSurvival(queuePlace(specOf(freshSpec(server))), MASSACRE)
}, 300_000)

it(`${POOLED.kills} SIGKILLs behind a pooler in transaction mode`, async () => {
  const pooler = await Pooler.open(server.url, 8)
  const spec = freshSpec(server, { url: pooler.url, listenUrl: server.url, prepare: false })
  await expectSurvival(queuePlace(specOf(spec)), POOLED)
  expect(pooler.transactions).toBeGreaterThan(POOLED.runs)
}, 300_000)
