/**
 * One side of a race between enqueueing and finding nothing, on several stores at once. The worker tells the producer,
 * by a socket and not by the store, when a run has begun; the producer starts the next a moment later, while the
 * worker settles the first and looks for more. `patient`: neither ever polls, so whoever misses a wake-up stands still.
 *
 * The worker says `listening`. The producer says `raced <JSON>` when all is done (see queue-races.ts), and fails if a
 * run stands still.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { realRandom } from '../../../src/core/random.ts'
import { realScheduler, type Scheduler } from '../../../src/core/scheduler.ts'
import { Client, Engine, queue, workflow } from '../../../src/index.ts'
import { Hub } from '../../../src/runtime/hub.ts'
import type { Store } from '../../../src/store/contract.ts'
import type { Races } from '../queue-races.ts'
import { instant } from '../queue-work.ts'
import { quiet } from '../quiet.ts'
import { storeOf } from '../store-spec.ts'

const STUCK_MS = 15_000

const [role = '', socketPath = '', patience = '', count = '', ...specs] = process.argv.slice(2)
const say = (line: string): boolean => process.stdout.write(`${line}\n`)

/** What waits for half a second or more (the polls) waits a hundred times as long. */
const patient: Scheduler = {
  turn: () => realScheduler.turn(),
  onTurn: (callback) => realScheduler.onTurn(callback),
  afterMicrotasks: (callback) => realScheduler.afterMicrotasks(callback),
  after: (delayMs, callback, options) =>
    realScheduler.after(delayMs < 500 ? delayMs : 100 * delayMs, callback, options),
  monotonic: () => realScheduler.monotonic(),
}

function open(spec: string): Store {
  const store = storeOf(spec)
  if (patience === 'patient') Hub.of(store, { scheduler: patient, random: realRandom })
  return store
}

async function work(): Promise<void> {
  const server = createServer().listen(socketPath)
  await once(server, 'listening')
  say('listening')
  const [socket]: Socket[] = await once(server, 'connection')
  // The producer leaves when it has seen all.
  socket?.on('error', () => {})
  const tell = (what: string, file: number, n: number): boolean | undefined =>
    socket?.write(`${what} ${file} ${n} ${instant()}\n`)
  await Promise.all(
    specs.map(async (spec, file) => {
      const store = open(spec)
      const commit = store.commit.bind(store)
      store.commit = async (commands) => {
        const outcomes = await commit(commands)
        for (const command of commands) {
          if (command.type === 'settle') tell('settled', file, Number(command.runId))
        }
        return outcomes
      }
      const race = workflow('race', async (ctx) => tell('begun', file, Number(ctx.runId)))
      await new Engine({ store, definitions: [race], queues: [queue('races')], logger: quiet }).launch()
    }),
  )
  socket?.write('launched\n')
}

async function produce(): Promise<void> {
  const socket = connect(socketPath)
  const begunAt = specs.map(() => new Map<number, number>())
  const settledAt = specs.map(() => new Map<number, number>())
  const waiting = specs.map(() => (): void => {})
  let launched = (): void => {}
  const launching = new Promise<void>((resolve) => {
    launched = resolve
  })
  createInterface({ input: socket }).on('line', (line) => {
    const [what, file = '', n = '', at = ''] = line.split(' ')
    if (what === 'launched') launched()
    else if (what === 'settled') settledAt[Number(file)]?.set(Number(n), Number(at))
    else {
      begunAt[Number(file)]?.set(Number(n), Number(at))
      waiting[Number(file)]?.()
    }
  })
  await launching
  const races: Races = { latencies: [], offsets: [] }
  await Promise.all(
    specs.map(async (spec, file) => {
      const client = new Client({ store: open(spec), logger: quiet })
      const acceptedAt: number[] = []
      for (let n = 0; n < Number(count); n += 1) {
        const begun = new Promise<true>((resolve) => {
          waiting[file] = () => resolve(true)
        })
        const askedAt = instant()
        await client.start('race', undefined, { queue: 'races', id: String(n) })
        acceptedAt.push(instant())
        const came = await Promise.race([begun, setTimeout(STUCK_MS, false, { ref: false })])
        if (!came) throw new Error(`run ${n} of store ${file} stands still`)
        races.latencies.push((begunAt[file]?.get(n) ?? Number.POSITIVE_INFINITY) - askedAt)
        await setTimeout(Math.random() * 3)
      }
      for (const [n, at] of acceptedAt.entries()) {
        const before = settledAt[file]?.get(n - 1)
        if (before !== undefined) races.offsets.push(at - before)
      }
      await client.close()
    }),
  )
  say(`raced ${JSON.stringify(races)}`)
  socket.destroy()
}

await (role === 'worker' ? work() : produce())
