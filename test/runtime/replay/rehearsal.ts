/**
 * Runs passes of a body over a recording store that only the test sees: histories can be cut anywhere, as a crash
 * would cut them, and walked again. The clock runs faster than the host's and jumps to the next wake instant when a
 * run is suspended.
 */

import { type WorkflowContext, workflowContext } from '../../../src/api/context.ts'
import type { Clock, Timer } from '../../../src/core/clock.ts'
import { type Codec, createCodec } from '../../../src/core/codec.ts'
import type { EngineEvent } from '../../../src/core/engine-events.ts'
import { realScheduler, type Scheduler } from '../../../src/core/scheduler.ts'
import { silent } from '../../../src/observe/log.ts'
import { readHistory } from '../../../src/runtime/replay/history.ts'
import { Pass, type PassEnd } from '../../../src/runtime/replay/pass.ts'
import type { CheckpointRecord, NewCheckpoint } from '../../../src/store/records.ts'
import type { Dice } from './dice.ts'

export type Body = (ctx: WorkflowContext<unknown>) => Promise<unknown>

export const codec: Codec = createCodec()

/** `speed` milliseconds pass in one of the host's. */
export class FastClock implements Clock {
  readonly kind = 'real'
  readonly #speed: number
  readonly #start = performance.now()
  #ahead = 1_700_000_000_000

  constructor(speed = 200) {
    this.#speed = speed
  }

  now(): number {
    return Math.floor(this.#ahead + (performance.now() - this.#start) * this.#speed)
  }

  at(instant: number, callback: () => void): Timer {
    const handle = setTimeout(callback, Math.max(0, Math.ceil((instant - this.now()) / this.#speed)))
    return { cancel: () => clearTimeout(handle) }
  }

  join(): () => void {
    return () => {}
  }

  jumpTo(instant: number): void {
    this.#ahead += Math.max(0, instant - this.now())
  }
}

/** A store's view of one run: entries are stored in order, each after a wait of its own. */
export class Recorder {
  readonly entries: CheckpointRecord[]
  readonly #delay: () => Promise<unknown>
  #last: Promise<unknown> = Promise.resolve()

  constructor(prefix: readonly CheckpointRecord[], delay: () => Promise<unknown>) {
    this.entries = [...prefix]
    this.#delay = delay
  }

  readonly store = (entries: readonly NewCheckpoint[]): Promise<boolean> => {
    const stored = this.#last.then(this.#delay).then(() => {
      this.#take(entries)
      return true
    })
    this.#last = stored
    return stored
  }

  #take(entries: readonly NewCheckpoint[]): void {
    for (const entry of entries) {
      if (entry.seq !== this.entries.length) throw new Error(`entry ${entry.seq} after ${this.entries.length} entries`)
      this.entries.push({ ...entry, recordedAt: 0 })
    }
  }
}

export interface Walk {
  readonly end: PassEnd
  readonly events: readonly EngineEvent[]
}

/** One pass over what the recorder holds. */
export async function walk(
  recorder: Recorder,
  clock: FastClock,
  body: Body,
  scheduler: Scheduler = realScheduler,
): Promise<Walk> {
  const events: EngineEvent[] = []
  const pass = new Pass({
    ...{ runId: 'run', clock, codec, scheduler },
    history: readHistory(recorder.entries),
    random: { next: () => 0.5, fill: (bytes) => bytes },
    store: recorder.store,
    onEvent: (event) => events.push(event),
  })
  const end = await pass.walk(() => body(workflowContext({ pass, state: undefined, logger: silent }, undefined)))
  return { end, events }
}

/** Passes, from suspension to suspension, to the end of the run. */
export async function walkToEnd(recorder: Recorder, body: Body): Promise<PassEnd> {
  const clock = new FastClock()
  for (;;) {
    const { end } = await walk(recorder, clock, body)
    // A settlement is stored after all that its pass has recorded.
    await recorder.store(end.type === 'suspended' ? end.entries : [])
    if (end.type !== 'suspended') return end
    clock.jumpTo(end.wakeAt)
  }
}

/** Real time goes a hundred times faster; what was waited for is kept. */
export class HastyScheduler implements Scheduler {
  readonly delays: number[] = []

  turn(): Promise<void> {
    return realScheduler.turn()
  }

  onTurn(callback: () => void): void {
    realScheduler.onTurn(callback)
  }

  afterMicrotasks(callback: () => void): void {
    realScheduler.afterMicrotasks(callback)
  }

  after(delayMs: number, callback: () => void): Timer {
    this.delays.push(delayMs)
    return realScheduler.after(delayMs / 100, callback)
  }

  monotonic(): number {
    return realScheduler.monotonic()
  }
}

/** Waits of no time, of turns, and of a few milliseconds. */
export function anyDelay(dice: Dice): () => Promise<unknown> {
  return async () => {
    const kind = dice.below(4)
    if (kind === 0) return
    if (kind < 3) await turns(1 + dice.below(3))
    else await new Promise((resolve) => setTimeout(resolve, 1 + dice.below(2)))
  }
}

export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
