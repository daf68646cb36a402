/**
 * Runs passes of a body over a recording store that only the test sees: histories can be cut anywhere, as a crash
 * would cut them, and walked again. The clock runs faster than the host's and jumps to the next wake instant when a
 * run is suspended.
 */

import type { WorkflowContext } from '../../../src/api/context.ts'
import type { RequestedStart, Starter } from '../../../src/api/definition.ts'
import { workflowContext } from '../../../src/api/replayed-context.ts'
import type { Clock, Timer } from '../../../src/core/clock.ts'
import type { EngineEvent } from '../../../src/core/engine-events.ts'
import { sha256Hex } from '../../../src/core/ids.ts'
import { realScheduler, type Scheduler } from '../../../src/core/scheduler.ts'
import { silent } from '../../../src/observe/log.ts'
import { readHistory } from '../../../src/runtime/replay/history.ts'
import { Pass, type PassEnd } from '../../../src/runtime/replay/pass.ts'
import type { Port } from '../../../src/runtime/replay/port.ts'
import type { NewRun } from '../../../src/store/commands.ts'
import type { Dice } from './dice.ts'
import type { Recorder } from './recorder.ts'
import { codec } from './values.ts'

export type Body = (ctx: WorkflowContext<unknown>) => Promise<unknown>

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

/** Any name is a definition, and those that begin with 'refused' are some whose starts are refused before they come to the store. */
export const starter: Starter = {
  prepare: async ({ target, input, options }: RequestedStart, { id, parentId }): Promise<NewRun> => {
    const definition = typeof target === 'string' ? target : target.name
    // As a schema would take its time: as much for a run as the last time.
    await turns(sha256Hex(id).charCodeAt(0) % 7)
    if (definition.startsWith('refused')) throw new Error('this start is refused')
    return {
      ...{ id: options?.id ?? id, definition, kind: 'workflow', queue: options?.queue ?? null, priority: 0 },
      ...{ partitionKey: null, due: null, input: codec.encode(input), inputHash: codec.encode(input) },
      ...{ maxRecoveries: 0, timeoutMs: null, parentId, kv: [], claim: null },
      dedup: options?.dedupId === undefined ? null : { id: options.dedupId, policy: 'reject' },
    }
  },
}

interface Surroundings {
  readonly runId?: string
  readonly port: Port
  readonly entries: Recorder['entries']
  readonly clock: Clock
  readonly scheduler?: Scheduler
  readonly epoch?: number
  readonly onEvent?: (event: EngineEvent) => void
}

export function newPass({ runId, port, entries, clock, scheduler, epoch, onEvent }: Surroundings): Pass {
  return new Pass({
    ...{ runId: runId ?? 'run', epoch: epoch ?? 0, clock, codec, scheduler: scheduler ?? realScheduler, port },
    history: readHistory(entries),
    random: { next: () => 0.5, fill: (bytes) => bytes },
    onEvent: onEvent ?? (() => {}),
  })
}

export function walkBody(pass: Pass, body: Body): Promise<PassEnd> {
  return pass.walk(() => body(workflowContext({ pass, state: undefined, logger: silent, starter }, undefined)))
}

export interface Walk {
  readonly end: PassEnd
  readonly events: readonly EngineEvent[]
}

/** One pass over what the recorder holds. */
export async function walk(
  recorder: Recorder,
  clock: Clock,
  body: Body,
  scheduler: Scheduler = realScheduler,
): Promise<Walk> {
  const events: EngineEvent[] = []
  const onEvent = (event: EngineEvent): void => void events.push(event)
  const pass = newPass({ port: recorder, entries: recorder.entries, clock, scheduler, onEvent })
  return { end: await walkBody(pass, body), events }
}

/** What a suspended run is woken by besides time. */
export interface Outside {
  /**
   * Brings about, if it wants to, something that the run waits for. `must`: nothing else will ever wake the run. False if
   * it has done nothing.
   */
  act(must: boolean): Promise<boolean>
}

const NOBODY: Outside = { act: async () => false }

/** Passes, from suspension to suspension, to the end of the run. */
export async function walkToEnd(
  recorder: Recorder,
  body: Body,
  { outside = NOBODY, scheduler = realScheduler }: { outside?: Outside; scheduler?: Scheduler } = {},
): Promise<PassEnd> {
  const clock = new FastClock()
  for (;;) {
    const { end } = await walk(recorder, clock, body, scheduler)
    // A settlement is stored after all that its pass has recorded.
    await recorder.store(end.type === 'suspended' ? end.entries : [])
    if (end.type !== 'suspended') return end
    await awaited(recorder, end, { outside, clock })
  }
}

/** Resolves when the store would have the run claimed again. */
async function awaited(
  { facts }: Recorder,
  { wakeAt, children }: PassEnd & { readonly type: 'suspended' },
  { outside, clock }: { readonly outside: Outside; readonly clock: FastClock },
): Promise<void> {
  const isThere = (): boolean =>
    [...facts.waits.values()].some(({ state }) => state === 'signalled') ||
    children.some(({ runId }) => facts.ending(runId) !== undefined)
  while (!isThere()) {
    if (await outside.act(wakeAt === null)) continue
    if (wakeAt === null) throw new Error('the run waits for ever')
    clock.jumpTo(wakeAt)
    return
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

/** Short waits take no time, so that suspensions come soon, and longer ones enough for awaits that are not durable. */
export class BriskScheduler extends HastyScheduler {
  override after(delayMs: number, callback: () => void): Timer {
    return realScheduler.after(delayMs <= 100 ? 0 : delayMs / 4, callback)
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
