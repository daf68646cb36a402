/**
 * Puts runs on queues by their name, without any definition, from several callers at once. Takes `more <count>`; says
 * `loaded`, and notes each run that was accepted. Each may be delayed by so many milliseconds.
 */
import { createInterface } from 'node:readline'
import { Client } from '../../../src/index.ts'
import { Journal } from '../journal.ts'
import { quiet } from '../quiet.ts'
import { storeOf } from '../store-spec.ts'

const CALLERS = 8

const [spec = '', log = '', prefix = '', lanes = '', delay = ''] = process.argv.slice(2)
const journal = new Journal(log)
const client = new Client({ store: storeOf(spec), logger: quiet })
const choices = lanes.split(' ')
let wanted = 0
let started = 0

async function startOne(n: number): Promise<void> {
  const lane = choices[n % choices.length] ?? ''
  const [queue = '', partitionKey] = lane.split('/')
  const options = {
    ...{ queue, id: `${lane}.${prefix}-${n}` },
    ...(partitionKey === undefined ? {} : { partitionKey }),
    ...(delay === '' ? {} : { delay: Number(delay) }),
  }
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
