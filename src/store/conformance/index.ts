/**
 * The conformance kit: what contract.ts and transitions.ts promise, as tests that every store must pass, whoever
 * wrote it. It runs under any runner with `describe` and `it`, and asserts with node:assert.
 *
 * @example
 * import { describe, it } from 'vitest'
 * storeConformance({
 *   name: 'sqlite',
 *   capabilities: { durable: true, shared: true },
 *   api: { describe, it },
 *   create: async (clock) => {
 *     const path = await emptyPath()
 *     return { connect: () => sqlite(path, { clock }), destroy: () => rm(path) }
 *   },
 * })
 */
import type { Clock } from '../../core/clock.ts'
import type { StoreCapabilities } from '../contract.ts'
import { attempts } from './attempts.ts'
import { batch } from './batch.ts'
import { byName } from './by-name.ts'
import { cancel } from './cancel.ts'
import { cascade } from './cascade.ts'
import { checkpoint } from './checkpoint.ts'
import { children } from './children.ts'
import { claim } from './claim.ts'
import { concurrency } from './concurrency.ts'
import { dedup } from './dedup.ts'
import { delay } from './delay.ts'
import { directStart } from './direct-start.ts'
import { dispatch } from './dispatch.ts'
import { effects } from './effects.ts'
import { enqueue } from './enqueue.ts'
import { globalLimit } from './global-limit.ts'
import { kv } from './kv.ts'
import { lanes } from './lanes.ts'
import { lease } from './lease.ts'
import { lifecycle } from './lifecycle.ts'
import { limitRaces } from './limit-races.ts'
import { nextAt } from './next-at.ts'
import { order } from './order.ts'
import { perform } from './perform.ts'
import { place } from './place.ts'
import { processes } from './processes.ts'
import { queue } from './queue.ts'
import { rateLedger } from './rate-ledger.ts'
import { rateLimit } from './rate-limit.ts'
import { reads } from './reads.ts'
import { requeue } from './requeue.ts'
import { resend } from './resend.ts'
import { retention } from './retention.ts'
import { scan } from './scan.ts'
import { settle } from './settle.ts'
import { sharing } from './sharing.ts'
import { signal } from './signal.ts'
import { situation } from './situation.ts'
import { suspend } from './suspend.ts'
import { time } from './time.ts'
import { transact } from './transact.ts'
import { values } from './values.ts'
import { version } from './version.ts'
import { wait } from './wait.ts'
import { wakeRaces } from './wake-races.ts'
import type { ConformanceDatabase, Test } from './world.ts'
import { World } from './world.ts'

export type { ConformanceDatabase } from './world.ts'

/** The two functions of a test runner that the kit uses. */
export interface ConformanceApi {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
}

export interface ConformanceOptions {
  /** Heads the report. */
  readonly name: string
  /** What the store says of itself; decides which tests apply. */
  readonly capabilities: StoreCapabilities
  readonly api: ConformanceApi
  /** A new, empty database whose stores live on `clock`. Called once for each test. */
  readonly create: (clock: Clock) => Promise<ConformanceDatabase>
}

const AREAS: Readonly<Record<string, (test: Test, capabilities: StoreCapabilities) => void>> = {
  lifecycle,
  enqueue,
  'direct start': directStart,
  claim,
  order,
  queues: queue,
  'place in the queue': place,
  dispatching: dispatch,
  lanes,
  delays: delay,
  nextAt,
  'global limit': globalLimit,
  'rate limit': rateLimit,
  'ledger of starts': rateLedger,
  deduplication: dedup,
  versions: version,
  'starts by name': byName,
  retention,
  situation,
  checkpoint,
  settle,
  suspend,
  waits: wait,
  signals: signal,
  children,
  'cancelled together': cascade,
  perform,
  transactions: transact,
  'staged effects': effects,
  'key-values': kv,
  scan,
  cancel,
  requeue,
  lease,
  processes,
  attempts,
  reads,
  resend,
  batch,
  time,
  values,
  concurrency,
  'limits under races': limitRaces,
  'wake-ups under races': wakeRaces,
  sharing,
}

/** Declares all tests that apply to the store. */
export function storeConformance({ name, capabilities, api, create }: ConformanceOptions): void {
  const test: Test = (title, body) => {
    api.it(title, async () => {
      const world = await World.open(create)
      try {
        await body(world)
      } finally {
        await world.close()
      }
    })
  }
  api.describe(`store conformance: ${name}`, () => {
    for (const [area, declare] of Object.entries(AREAS)) api.describe(area, () => declare(test, capabilities))
  })
}
