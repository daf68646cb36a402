/** Holds a claim by a lease thread, blocks its event loop for a while, then says whether it still has it. */
import { DatabaseClock } from '../../../../src/store/postgres/clock.ts'
import { Database } from '../../../../src/store/postgres/database.ts'
import { startLeaseThread } from '../../../../src/store/postgres/lease-thread-host.ts'
import { checkSettings } from '../../../../src/store/postgres/options.ts'
import { claimed, enqueue, held, submit, tokenOf } from '../claims.ts'

const [url, schema = '', leaseMs = '', maxBlockedMs = '', blockMs = ''] = process.argv.slice(2)
const database = await Database.open({ settings: checkSettings(url, { schema }), clock: new DatabaseClock() })
await enqueue(database, claimed('a', Number(leaseMs)))
const way = { connection: database.clientConfig('any'), render: (sql: string) => database.render(sql) }
const thread = startLeaseThread(way, {
  leaseMs: Number(leaseMs),
  maxBlockedMs: Number(maxBlockedMs),
  onRenewed: () => {},
  onFailed: (error) => {
    throw error
  },
})
thread?.hold(held('a'))
await new Promise((resolve) => setTimeout(resolve, Number(leaseMs) / 2))
process.stdout.write('blocked')
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockMs))
const outcome = await submit(database, { type: 'checkpoint', runId: 'a', token: tokenOf('a'), entries: [] })
process.stdout.write(`claim is ${outcome?.type}`)
