/** No run is left behind that is enqueued while a worker in another process finds its queue empty. */
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { place } from './place.ts'
import { startProgram } from './queue-children.ts'
import type { Races } from './queue-races.ts'

const FILES = 20
const RACES_EACH = 500
/** How often a dispatcher looks by itself. */
const POLL_MS = 1_000

it(`${FILES * RACES_EACH} races of enqueueing against finding nothing: none is left behind, none is found by a poll (C-08)`, async () => {
  const { log } = place()
  const folder = dirname(log)
  const files = Array.from({ length: FILES }, (_, n) => join(folder, `${n}.db`))
  const [socket, count] = [join(folder, 'socket'), String(RACES_EACH)]
  const worker = startProgram('racer', 'worker', socket, count, ...files)
  await worker.says('listening')
  const producer = startProgram('racer', 'producer', socket, count, ...files)
  const line = await producer.says('raced ')
  expect(await producer.ended).toEqual({ code: 0, signal: null })

  const { latencies, offsets }: Races = JSON.parse(line.slice('raced '.length))
  expect(latencies).toHaveLength(FILES * RACES_EACH)
  latencies.sort((a, b) => a - b)
  const at = (share: number): number => latencies[Math.floor(share * (latencies.length - 1))] ?? 0
  const close = offsets.filter((ms) => Math.abs(ms) < 25)
  const earlier = close.filter((ms) => ms < 0).length
  console.log(
    `enqueued to begun: p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, max ${at(1).toFixed(1)} ms; ` +
      `${close.length} starts within 25 ms of the settlement before, ${earlier} of them earlier than it`,
  )
  // Polls don't come here: the producer fails if a run stands still. With them it would be found after half of this.
  expect(at(0.5)).toBeLessThan(POLL_MS / 2)
  expect(earlier).toBeGreaterThan(latencies.length / 50)
  expect(close.length - earlier).toBeGreaterThan(latencies.length / 50)
}, 240_000)
