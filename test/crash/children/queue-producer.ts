/**
 * Puts runs on queues by their name, without any definition, from several callers at once. Takes `more <count>`; says
 * `loaded`, and notes each run that was accepted.
 */
import { createInterface } from 'node:readline'
import { Client } from '../../../src/index.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { Journal } from '../journal.ts'
import { quiet } from '../quiet.ts'

const CALLERS = 8

const [path = '', log = '', prefix = '', lanes = ''] = process.argv.slice(2)
const journal = new Journal(log)
const client = new Client({ store: sqlite(path), logger: quiet })
const choices = lanes.split(' ')
let wanted = 0
let started = 0

async function startOne(n: number): Promise<void> {
  const lane = choices[n % choices.length] ?? ''
  const [queue = '', partitionKey] = lane.split('/')
  const options = { queue, id: `${lane}.${prefix}-${n}`, ...(partitionKey === undefined ? {} : { partitionKey }) }
  const run = await client.start('task', { ms: Math.random() * 30 }, options)
  journal.note('accepted', run.id)
}

async function call(): Promise<void> {
  while (started < wanted) await startOne(started++)
}

let calling = Promise.resolve()
createInterface({ input: process.stdin }).on('line', (line) => {
  wanted += Number(line.split(' ')[1])
  calling = calling.then(async () => {
    await Promise.all(Array.from({ length: CALLERS }, call))
    process.stdout.write('enough\n')
  })
})
process.stdout.write('loaded\n')
