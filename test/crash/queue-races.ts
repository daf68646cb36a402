/** Races of a producer with a worker, each a process, on several stores at once (children/queue-racer.ts). */
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { place } from './place.ts'
import { startProgram } from './queue-children.ts'

/** What a producer has seen of its races with a worker. */
export interface Races {
  /** From the call that started a run until it began, in milliseconds. */
  readonly latencies: number[]
  /** From the acknowledgement of the settlement of a run to that of the start of the next: how close the race was. */
  readonly offsets: number[]
}

export interface RaceOptions {
  readonly specs: readonly string[]
  readonly racesEach: number
  /** Whether both poll as usual, or so seldom that only a wake-up helps. */
  readonly patience: 'patient' | 'usual'
}

export async function race({ specs, racesEach, patience }: RaceOptions): Promise<Races> {
  const args = [join(dirname(place().log), 'socket'), patience, String(racesEach), ...specs]
  const worker = startProgram('racer', 'worker', ...args)
  await worker.says('listening')
  const producer = startProgram('racer', 'producer', ...args)
  const line = await producer.says('raced ')
  expect(await producer.ended).toEqual({ code: 0, signal: null })
  const races: Races = JSON.parse(line.slice('raced '.length))
  expect(races.latencies).toHaveLength(specs.length * racesEach)
  races.latencies.sort((a, b) => a - b)
  return races
}

/** The latency that a share of the runs stayed below. */
export function latencyAt({ latencies }: Races, share: number): number {
  return latencies[Math.floor(share * (latencies.length - 1))] ?? 0
}

/** Starts that came shortly before the settlement of the run before, and shortly after: that close was the race. */
export function closeStarts({ offsets }: Races): { readonly before: number; readonly after: number } {
  const close = offsets.filter((ms) => Math.abs(ms) < 25)
  const before = close.filter((ms) => ms < 0).length
  return { before, after: close.length - before }
}

export function tell(races: Races): void {
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => latencyAt(races, share).toFixed(1))
  const { before, after } = closeStarts(races)
  console.log(
    `enqueued to begun: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms; ` +
      `${before + after} starts within 25 ms of the settlement before, ${before} of them earlier than it`,
  )
}
