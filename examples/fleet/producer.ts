/**
 * The producer: hands in work in small portions, and has neither the code that does it nor the queues' knobs.
 *
 * Arguments: the database's URL.
 */
import { setTimeout } from 'node:timers/promises'
import { Client } from 'perdure'
import { postgres } from 'perdure/postgres'
import type { definitions } from './work.ts'

const PAGES = 36
const CALLS = 48
const CUSTOMERS = ['ada', 'bob', 'cyd', 'dee']
const BILLS_EACH = 6
const PORTIONS = 6

const [database = ''] = process.argv.slice(2)
const client = new Client<typeof definitions>({ store: postgres(database) })
process.once('disconnect', () => process.exit(1))
process.channel?.unref()

/** The n-th of so many portions of a list. */
function portion<T>(all: readonly T[], n: number): readonly T[] {
  return all.filter((_, index) => index % PORTIONS === n)
}

const pages = Array.from({ length: PAGES }, (_, n) => n + 1)
const calls = Array.from({ length: CALLS }, (_, n) => n + 1)
const bills = Array.from({ length: BILLS_EACH }, (_, n) => CUSTOMERS.map((customer) => ({ customer, n: n + 1 }))).flat()

for (let n = 0; n < PORTIONS; n += 1) {
  const runs = [
    ...(await client.startMany(
      'render',
      portion(pages, n).map((page) => ({ input: page, options: { id: `page-${page}`, queue: 'render' } })),
    )),
    ...(await client.startMany(
      'call',
      portion(calls, n).map((call) => ({ input: call, options: { id: `call-${call}`, queue: 'api' } })),
    )),
    ...(await client.startMany(
      'bill',
      portion(bills, n).map(({ customer, n: number }) => ({
        input: customer,
        options: { id: `${customer}-${number}`, queue: 'billing', partitionKey: customer },
      })),
    )),
  ]
  // Accepted: whatever happens now, they are done.
  process.send?.(runs.map(({ id }) => id))
  await setTimeout(250)
}
await client.close()
