/**
 * `npm run demo:fleet`: a producer and three workers, which have nothing in common but a PostgreSQL database. One worker
 * is killed in the middle of its work; the others go on with it, and the limits of the queues hold all the time. Exits
 * with 1 unless a journal outside of the database says so.
 *
 * Needs nothing installed: the demo starts a PostgreSQL of its own. Read work.ts first (the queues, and what runs on
 * them), then worker.ts and producer.ts (the two kinds of processes).
 */
import { Client } from 'perdure'
import { postgres } from 'perdure/postgres'
import { startProcess, type WorkerProcess } from '../demo/process.ts'
import { failed, heading, line, paint } from '../demo/screen.ts'
import { startDatabase } from './database.ts'
import { Journal } from './outside.ts'
import { Timeline } from './timeline.ts'
import { judge } from './verdicts.ts'

const WORKERS = ['worker-1', 'worker-2', 'worker-3']
/** Not before all are in the middle of their work. */
const KILL_AFTER_MS = 1_000
const GIVE_UP_AFTER_MS = 90_000
const WORKER = new URL('./worker.ts', import.meta.url)
const PRODUCER = new URL('./producer.ts', import.meta.url)

process.once('SIGINT', () => process.exit(130))
// A run that was lost never ends.
setTimeout(() => {
  line(paint('red', `Not done after ${GIVE_UP_AFTER_MS / 1_000} s: something was lost, or the machine is very busy.`))
  process.exit(1)
}, GIVE_UP_AFTER_MS).unref()

async function launched(name: string, args: readonly string[]): Promise<WorkerProcess> {
  return await new Promise((resolve, reject) => {
    const worker = startProcess(name, WORKER, args, () => resolve(worker))
    worker.gone.catch(reject)
  })
}

interface Death {
  readonly victim: string
  readonly at: number
}

/** Kills the first worker that has a page and a bill in hand. */
function killInTheMiddle(workers: readonly WorkerProcess[], journal: Journal, timeline: Timeline): Promise<Death> {
  const notBefore = Date.now() + KILL_AFTER_MS
  return new Promise((resolve) => {
    journal.onBegin = () => {
      if (Date.now() < notBefore || !workers.every(({ name }) => hasWorked(name, journal))) return
      const victim = workers.find(({ name }) => isInTheMiddle(name, journal))
      if (victim === undefined) return
      victim.kill()
      const orphans = new Set(journal.killed(victim.name).map(({ run }) => run))
      const death = { victim: victim.name, at: Date.now() }
      timeline.killed(victim.name)
      timeline.tell(paint('red', `kill -9 ${victim.name}`), `in the middle of ${[...orphans].join(', ')}`)
      journal.onBegin = ({ run, worker }) => {
        if (worker === victim.name || !orphans.delete(run)) return
        timeline.tell(paint('cyan', `${run} goes on in ${worker}`), `${Date.now() - death.at} ms after the kill`)
      }
      resolve(death)
    }
  })
}

function hasWorked(name: string, journal: Journal): boolean {
  return journal.entries.some(({ worker, endedAt }) => worker === name && endedAt !== undefined)
}

function isInTheMiddle(name: string, journal: Journal): boolean {
  const inHand = journal.underWay().filter(({ worker }) => worker === name)
  return ['render', 'billing'].every((queue) => inHand.some((entry) => entry.queue === queue))
}

heading('A fleet on PostgreSQL: one producer, three workers, and a kill')
const began = performance.now()
const seconds = (): string => ((performance.now() - began) / 1_000).toFixed(1)
const database = await startDatabase()
const journal = new Journal()
const url = await journal.open()
line(`  PostgreSQL is there after ${seconds()} s`)

const workers = await Promise.all(WORKERS.map((name) => launched(name, [database.url, url, name])))
line(`  ${WORKERS.join(', ')} launched: render 3 at a time, api 10 calls a second, billing 1 at a time per customer`)
line()

const client = new Client({ store: postgres(database.url) })
const timeline = new Timeline(journal, WORKERS)
timeline.start()
const death = killInTheMiddle(workers, journal, timeline)

const accepted: string[] = []
const producer = startProcess('producer', PRODUCER, [database.url], (ids) => {
  accepted.push(...(ids as string[]))
})
await producer.gone
timeline.tell(paint('cyan', 'the producer is done, and gone'), `${accepted.length} runs accepted`)
const { victim, at: killedAt } = await death
const ended = await Promise.all(
  accepted.map(async (id) => {
    await client.handle(id).result()
    return id
  }),
)
timeline.stop()
timeline.tell(paint('cyan', 'all runs have ended'))

const attempts = new Map(await Promise.all(accepted.map(async (id) => [id, await client.runs.attempts(id)] as const)))
for (const worker of workers) if (worker.name !== victim) worker.stop()
const ends = await Promise.all(workers.map(({ gone }) => gone))
await client.close()
journal.close()
judge({ accepted, ended, entries: journal.entries, attempts, workers: WORKERS, victim, killedAt })
await database.stop()

const isAsTold = !failed() && ends.filter((end) => end === 'killed').length === 1
line()
line(
  isAsTold
    ? paint('green', `Nothing lost, no limit exceeded, one worker dead, in ${seconds()} s.`)
    : paint('red', 'Something was lost or doubled, or a limit exceeded.'),
)
process.exitCode = isAsTold ? 0 : 1
