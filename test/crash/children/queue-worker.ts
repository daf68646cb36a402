/**
 * Works on queues: does what it is told, line by line, and says what happens.
 *
 * Takes `launch`, `recover`, `release <run id>` and `shutdown <ms>`; says `loaded`, `launched`, `begun <run id>`,
 * `holding <run id>`, `halted`, `draining`, `stopped`, and each warning and error that is logged.
 */
import { createInterface } from 'node:readline'
import { realRandom } from '../../../src/core/random.ts'
import { realScheduler } from '../../../src/core/scheduler.ts'
import { Engine, type Logger, queue } from '../../../src/index.ts'
import { Hub } from '../../../src/runtime/hub.ts'
import { notingStore } from '../busy.ts'
import { Journal } from '../journal.ts'
import { passingPoints } from '../queue-halting.ts'
import type { WorkerSettings } from '../queue-place.ts'
import { taskWorkflow } from '../queue-work.ts'

const [spec = '', log = '', json = '{}'] = process.argv.slice(2)
const settings: WorkerSettings = JSON.parse(json)
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const journal = new Journal(log)
const doors = new Map<string, () => void>()

const task = taskWorkflow({
  journal,
  begun: (runId) => void say(`begun ${runId}`),
  hold: (runId) => {
    if (settings.holds !== true) return Promise.resolve()
    say(`holding ${runId}`)
    return new Promise((resolve) => doors.set(runId, resolve))
  },
})

const telling =
  (level: string): Logger['warn'] =>
  (message, fields) =>
    void say(`${level} ${String(fields?.['runId'] ?? '')} ${message}`)
const logger: Logger = { debug: () => {}, info: () => {}, warn: telling('warn'), error: telling('error') }

function halt(point: string): Promise<void> | undefined {
  if (point !== settings.haltAt) return undefined
  say('halted')
  return new Promise(() => {})
}

function engineOf(): Engine {
  const { leaseMs, mute = false, executorId, version, queues } = settings
  // Each engine has a store object of its own, hence connections, a hub and a committer of its own.
  const store = passingPoints(notingStore(spec, journal), halt)
  if (leaseMs !== undefined) Hub.of(store, { scheduler: realScheduler, random: realRandom, leaseMs })
  if (mute) {
    store.leaseThread = () => ({ hold: () => {}, drop: () => {}, stop: () => Promise.resolve() })
    store.renew = () => Promise.resolve({ lost: [], cancelRequested: [] })
  }
  return new Engine({
    store,
    logger,
    definitions: [task],
    queues: Object.entries(queues).map(([name, options]) => queue(name, options)),
    ...(executorId === undefined ? {} : { executorId }),
    ...(version === undefined ? {} : { version }),
  })
}

const engines = Array.from({ length: settings.engines ?? 1 }, engineOf)
const orders: Readonly<Record<string, (word: string) => Promise<void> | void>> = {
  launch: async () => {
    await Promise.all(engines.map((engine) => engine.launch()))
    say('launched')
  },
  recover: async () => {
    await Promise.all(engines.map((engine) => engine.recover()))
  },
  release: (id) => doors.get(id)?.(),
  shutdown: async (timeout) => {
    const stopping = engines.map((engine) => engine.shutdown({ timeout: Number(timeout) }))
    say('draining')
    await Promise.all(stopping)
    process.stdin.destroy()
    say('stopped')
  },
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb = '', word = ''] = line.split(' ')
  void orders[verb]?.(word)
})
say('loaded')
