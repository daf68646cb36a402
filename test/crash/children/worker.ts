/**
 * The scenario worker: does what it is told, line by line, and says what happens.
 *
 * Takes `launch`, `start <definition> <id> <input as JSON>`, `release <id>` and `shutdown`; says `loaded`,
 * `launched`, `started <id>`, `holding <id>`, `ended <id> <outcome>`, and each warning and error that is logged.
 */
import { createInterface } from 'node:readline'
import { realRandom } from '../../../src/core/random.ts'
import { realScheduler } from '../../../src/core/scheduler.ts'
import { type Definition, Engine, type Logger } from '../../../src/index.ts'
import { Hub } from '../../../src/runtime/hub.ts'
import { sqlite } from '../../../src/store/sqlite/index.ts'
import { Journal } from '../journal.ts'
import { scenarios } from '../scenarios.ts'

const [path = '', log = '', leaseMs = '', renewal = ''] = process.argv.slice(2)
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const store = sqlite(path)
if (leaseMs !== '') Hub.of(store, { scheduler: realScheduler, random: realRandom, leaseMs: Number(leaseMs) })
if (renewal === 'mute') store.leaseThread = () => ({ hold: () => {}, drop: () => {}, stop: () => Promise.resolve() })

const doors = new Map<string, () => void>()
let launchedAt = 0
const definitions = scenarios({
  journal: new Journal(log),
  hold: (runId) => {
    say(`holding ${runId}`)
    return new Promise((resolve) => doors.set(runId, resolve))
  },
  elapsed: () => performance.now() - launchedAt,
})

const telling =
  (level: string): Logger['warn'] =>
  (message, fields) =>
    void say(`${level} ${String(fields?.['runId'] ?? '')} ${message}`)
const logger: Logger = { debug: () => {}, info: () => {}, warn: telling('warn'), error: telling('error') }
const engine = new Engine({ store, definitions: Object.values(definitions), logger })

function starterOf<I, O>(definition: Definition<I, O, never>) {
  return async (id: string, input: string): Promise<void> => {
    const runs = await engine.startMany(definition, [{ input: JSON.parse(input), options: { id } }])
    say(`started ${id}`)
    await Promise.all(runs.map((run) => run.result())).then(
      () => say(`ended ${id} ok`),
      (error: unknown) => say(`ended ${id} ${String(error)}`),
    )
  }
}

const starters: Readonly<Record<string, (id: string, input: string) => Promise<void>>> = {
  shift: starterOf(definitions.shift),
  blocking: starterOf(definitions.blocking),
  poison: starterOf(definitions.poison),
  steady: starterOf(definitions.steady),
  nap: starterOf(definitions.nap),
  stubborn: starterOf(definitions.stubborn),
  failing: starterOf(definitions.failing),
}

async function shutdown(timeout: number): Promise<void> {
  await engine.shutdown({ timeout })
  const stoppedAt = performance.now()
  process.stdin.destroy()
  say(
    `left over: ${process
      .getActiveResourcesInfo()
      .filter((kind) => !/Pipe|FSReq/.test(kind))
      .join()}`,
  )
  process.once('exit', () => say(`gone ${Math.round(performance.now() - stoppedAt)}`))
}

process.once('SIGTERM', () => void shutdown(1_500))
const orders: Readonly<Record<string, (...words: readonly string[]) => unknown>> = {
  launch: async () => {
    launchedAt = performance.now()
    await engine.launch()
    say('launched')
  },
  start: (name = '', id = '', ...input) => starters[name]?.(id, input.join(' ') || 'null'),
  release: (id = '') => doors.get(id)?.(),
  shutdown: () => shutdown(10_000),
}

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const [verb = '', ...words] = line.split(' ')
  void orders[verb]?.(...words)
})
say('loaded')
