/** A worker whose runs do nothing but transactions, each of which leaves a row in a table of the user's. */
import { Engine, workflow } from '../../src/index.ts'
import type { Store } from '../../src/store/contract.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { sqlite } from '../../src/store/sqlite/index.ts'
import { quiet } from './quiet.ts'

export const ROUNDS = 6
const AT_A_TIME = 12

/** The user's tables, in the database of the store. `mark`: the n-th placeholder. */
export interface Where {
  readonly store: Store
  readonly mark: (n: number) => string
}

/** `sqlite <file>` or `postgres <url> <schema>`. */
export function whereOf([kind, place = '', schema = '']: readonly string[]): Where {
  if (kind === 'sqlite') return { store: sqlite(place), mark: () => '?' }
  return { store: postgres(place, { schema }), mark: (n) => `$${n}` }
}

export function adding({ mark }: Pick<Where, 'mark'>) {
  return workflow('adding', async (ctx) => {
    let sum = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      sum += await ctx.transaction('add', async (tx) => {
        const [row] = await tx.query<{ n: number }>('update sums set n = n + 1 returning n')
        const values = [ctx.runId, row?.n ?? 0]
        await tx.run(`insert into additions (run, n) values (${mark(1)}, ${mark(2)})`, values)
        return row?.n ?? 0
      })
    }
    return sum
  })
}

/** Keeps so many runs under way; says `added` whenever one has ended. */
export async function addForever(where: Where): Promise<never> {
  const flow = adding(where)
  const engine = new Engine({ store: where.store, definitions: [flow], logger: quiet })
  await engine.launch()
  const line = async (): Promise<never> => {
    for (;;) {
      await (await engine.start(flow)).result()
      console.log('added')
    }
  }
  return await Promise.race(Array.from({ length: AT_A_TIME }, line))
}

/** Leaves when every run of the store has ended. */
export async function finish(where: Where): Promise<void> {
  const engine = new Engine({ store: where.store, definitions: [adding(where)], logger: quiet })
  await engine.launch()
  for (;;) {
    const { runs } = await engine.runs.list({ status: ['PENDING', 'ENQUEUED', 'WAITING'], limit: 1 })
    if (runs.length === 0) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await engine.shutdown()
}
