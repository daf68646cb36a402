/**
 * Callers that want the same deduplication id. Takes `race <dedup id> <policy>`: each caller starts a run of its own;
 * `chain <dedup id> <count>`: one caller starts the next as soon as it has the result of the last. Says `loaded`, for each
 * caller of a race `raced <dedup id> admitted <id>`, `existing <id>` or `refused <holder>`, and `chained <dedup id> <how often>`.
 */
import { createInterface } from 'node:readline'
import { Client, QueueDeduplicatedError } from '../../../src/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { quiet } from '../quiet.ts'

const [path = '', name = '', callers = ''] = process.argv.slice(2)
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const client = new Client({ store: sqlite(path), logger: quiet })

async function call(dedupId: string, dedupPolicy: 'reject' | 'returnExisting', id: string): Promise<string> {
  try {
    const run = await client.start('task', { ms: 2 }, { queue: 'unique', id, dedupId, dedupPolicy })
    return `${run.newlySubmitted ? 'admitted' : 'existing'} ${run.id}`
  } catch (error) {
    if (error instanceof QueueDeduplicatedError) return `refused ${error.holder}`
    return String(error)
  }
}

async function race(dedupId: string, policy: string): Promise<void> {
  const dedupPolicy = policy === 'reject' ? 'reject' : 'returnExisting'
  const calling = Array.from({ length: Number(callers) }, async (_, n) => {
    say(`raced ${dedupId} ${await call(dedupId, dedupPolicy, `unique/${dedupId}.${name}-${n}`)}`)
  })
  await Promise.all(calling)
}

async function chain(dedupId: string, count: string): Promise<void> {
  let admitted = 0
  for (let n = 0; n < Number(count); n += 1) {
    const run = await client.start('task', { ms: 0 }, { queue: 'unique', id: `unique/${dedupId}.${n}`, dedupId })
    if (run.newlySubmitted) admitted += 1
    await run.result()
  }
  say(`chained ${dedupId} ${admitted}`)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb = '', dedupId = '', word = ''] = line.split(' ')
  void (verb === 'race' ? race(dedupId, word) : chain(dedupId, word))
})
say('loaded')
