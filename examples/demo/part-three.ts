/** Part 3: queues. This process only hands in work, by a Client; two others do it, within the limits. */
import { join } from 'node:path'
import { Client } from 'perdure'
import { sqlite } from 'perdure/sqlite'
import { CALLS, type definitions } from './media.ts'
import { startProcess, type WorkerProcess } from './process.ts'
import { bar, heading, line, liveLine, paint, verdict } from './screen.ts'
import { StudioServer } from './studio.ts'

const FILES = Array.from({ length: 12 }, (_, index) => `film-${String(index + 1).padStart(2, '0')}`)
const MOST_AT_A_TIME = 2
const PROGRAM = new URL('./media-worker.ts', import.meta.url)

/** A call of the publisher, as the store knows it. */
interface Call {
  readonly at: number
  readonly worker: string
}

export async function partThree(folder: string): Promise<void> {
  heading(
    `Part 3: ${FILES.length} files, converted ${MOST_AT_A_TIME} at a time, and published at most ${CALLS.limit} in ${CALLS.periodMs} ms`,
  )
  const file = join(folder, 'three.db')
  const studio = new StudioServer()
  const url = await studio.open()
  const client = new Client<typeof definitions>({ store: sqlite(file) })
  const runs = await Promise.all(
    FILES.flatMap((film) => [
      client.start('convert', film, { queue: 'media' }),
      client.start('publish', film, { queue: 'publisher' }),
    ]),
  )
  line(`  ${runs.length} runs handed in; no process is there yet that could run one`)

  tellProgress(studio)
  const workers = await Promise.all([
    launched('worker-1', [file, url, 'worker-1', 'media', 'publisher']),
    launched('worker-2', [file, url, 'worker-2', 'publisher']),
  ])
  const results = await Promise.all(runs.map((run) => run.result()))
  const { runs: published } = await client.runs.list({ definition: 'publish' })
  const calls = published
    .map(
      ({ startedAt, executor = '' }): Call => ({ at: startedAt?.getTime() ?? 0, worker: executor.split(':')[0] ?? '' }),
    )
    .sort((a, b) => a.at - b.at)
  for (const worker of workers) worker.stop()
  await Promise.all(workers.map(({ gone }) => gone))
  await client.close()
  studio.close()
  showCalls(calls)
  judge(studio, results, calls)
}

async function launched(name: string, args: readonly string[]): Promise<WorkerProcess> {
  const worker = await new Promise<WorkerProcess>((resolve, reject) => {
    const started = startProcess(name, PROGRAM, args, () => resolve(started))
    started.gone.catch(reject)
  })
  line(`  ${paint('cyan', `${name} launched`)}, takes from: ${args.slice(3).join(', ')}`)
  return worker
}

function tellProgress(studio: StudioServer): void {
  let converted = 0
  studio.onConverted = (film) => {
    converted += 1
    const progress = `${bar(converted, FILES.length)} ${String(converted).padStart(2)} of ${FILES.length}`
    const running = `${studio.running} at a time`
    liveLine(`  ${progress}  ${running}`)
    if (converted % 3 === 0) line(`  ${progress}  ${running}  ${paint('dim', `${film} is done`)}`)
  }
}

/** Starts of the rate-limited queue, a line for each period since the first. */
function showCalls(calls: readonly Call[]): void {
  line()
  const began = calls[0]?.at ?? 0
  const last = calls.at(-1)?.at ?? 0
  for (let from = began; from <= last; from += CALLS.periodMs) {
    const within = calls.filter(({ at }) => at >= from && at < from + CALLS.periodMs)
    const marks = within.map(({ worker }) => (worker === 'worker-1' ? '1' : '2')).join('')
    const span = `${from - began} to ${from - began + CALLS.periodMs} ms`
    line(`  ${paint('dim', span.padStart(16))}  ${marks.padEnd(CALLS.limit)}  ${within.length} published`)
  }
}

function judge(studio: StudioServer, results: readonly string[], calls: readonly Call[]): void {
  const converted = new Set(results.filter((result) => result.endsWith('.mp4')))
  const published = new Set(results.filter((result) => result.endsWith('is published')))
  const tooSoon = calls.filter(({ at }, index) => {
    const earlier = calls[index - CALLS.limit]
    return earlier !== undefined && at - earlier.at < CALLS.periodMs
  })
  const by = (worker: string): number => calls.filter((call) => call.worker === worker).length

  line()
  verdict(
    converted.size === FILES.length && published.size === FILES.length,
    `${converted.size} of ${FILES.length} files were converted, ${published.size} published`,
  )
  verdict(studio.mostRunning <= MOST_AT_A_TIME, `the converter counted ${studio.mostRunning} files at a time at most`)
  verdict(
    calls.length === FILES.length && tooSoon.length === 0,
    `never more than ${CALLS.limit} published in any ${CALLS.periodMs} ms, by two processes together (${by('worker-1')} and ${by('worker-2')})`,
  )
}
