/** Workers over a memory store whose calls are counted, with handlers that a test holds and lets go. */
import { onTestFinished } from 'vitest'
import { createCodec } from '../../src/core/codec.ts'
import type { EngineEvent } from '../../src/core/engine-events.ts'
import { realRandom } from '../../src/core/random.ts'
import { realScheduler, type Scheduler } from '../../src/core/scheduler.ts'
import type { Handler } from '../../src/runtime/handler.ts'
import { Hub } from '../../src/runtime/hub.ts'
import { Worker, type WorkerOptions } from '../../src/runtime/worker.ts'
import type { WorkerQueue } from '../../src/runtime/worker-queue.ts'
import type { ClaimRequest, NewRun, Store } from '../../src/store/contract.ts'
import { memory } from '../../src/store/memory/index.ts'
import type { QueueKnobs } from '../../src/store/records.ts'
import { MockClock } from '../../src/testing/mock-clock.ts'
import { newRun } from './commands.ts'

export interface StoreCall {
  readonly name: string
  readonly args: readonly unknown[]
}

/** The store, and every call of it that returned a promise, in order. */
export function watched(store: Store): { readonly store: Store; readonly calls: StoreCall[] } {
  const calls: StoreCall[] = []
  const spy = new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        const result: unknown = member.apply(target, args)
        if (result instanceof Promise) calls.push({ name: String(key), args })
        return result
      }
    },
  })
  return { store: spy, calls }
}

export const claimsOf = (calls: readonly StoreCall[]): readonly ClaimRequest[] =>
  calls.flatMap(({ name, args }) => (name === 'claim' ? (args[0] as ClaimRequest) : []))

export function workerQueue(
  name: string,
  knobs: Partial<QueueKnobs> & { readonly configVersion?: number } = {},
  own: Partial<Omit<WorkerQueue, 'registration'>> = {},
): WorkerQueue {
  const limits = { globalConcurrency: null, releaseWhileWaiting: false, rateLimit: null, retention: null }
  const registration = { name, configVersion: 0, ...limits, priorityEnabled: false, partitioned: false, ...knobs }
  const polling = { basePollingMs: 1_000, maxPollingMs: 120_000 }
  return {
    ...{ registration, workerConcurrency: null, maxTasksPerIteration: 100, leaseMs: null, listened: true },
    ...{ ...polling, ...own },
  }
}

/** Runs that are in hand, by their input, until the test lets them go. */
export class Held {
  readonly begun: string[] = []
  readonly #inHand = new Map<string, () => void>()
  #free = false

  get now(): readonly string[] {
    return [...this.#inHand.keys()]
  }

  async body(input: unknown): Promise<unknown> {
    const name = String(input)
    this.begun.push(name)
    if (this.#free) return null
    await new Promise<void>((resolve) => this.#inHand.set(name, resolve))
    this.#inHand.delete(name)
    return null
  }

  end(name: string): void {
    this.#inHand.get(name)?.()
  }

  /** From now on nothing is held. */
  endAll(): void {
    this.#free = true
    for (const name of this.now) this.end(name)
  }
}

export function handlerOf(name: string, body: Handler['body'], differing: Partial<Handler> = {}): Handler {
  const limits = { maxRecoveries: 50, timeoutMs: null, retention: null }
  return { name, kind: 'workflow', ...limits, parseInput: undefined, body, ...differing }
}

export interface Workshop {
  readonly store: Store
  readonly hub: Hub
  readonly calls: StoreCall[]
  readonly held: Held
  readonly events: EngineEvent[]
  /** Launched, with one definition `d` whose runs are held; shut down when the test ends. */
  worker(options?: Partial<WorkerOptions>): Promise<Worker>
  enqueue(queue: string | null, names: readonly string[], differing?: Partial<NewRun>): Promise<void>
}

export interface WorkshopOptions {
  readonly clock?: MockClock | null
  readonly scheduler?: Scheduler
  readonly leaseMs?: number
  readonly inner?: Store
}

/** `clock`: null for the host's. */
export async function workshop({
  clock = new MockClock(),
  scheduler = realScheduler,
  leaseMs,
  inner = memory(clock === null ? {} : { clock }),
}: WorkshopOptions = {}): Promise<Workshop> {
  const { store, calls } = watched(inner)
  const hub = Hub.of(store, { scheduler, random: realRandom, ...(leaseMs === undefined ? {} : { leaseMs }) })
  await hub.acquire()
  onTestFinished(() => hub.release())
  const held = new Held()
  const events: EngineEvent[] = []
  const onEvent = (event: EngineEvent): void => void events.push(event)
  hub.events.on(onEvent)
  let commands = 0
  return {
    ...{ store, hub, calls, held, events },
    worker: async (options = {}) => {
      const handlers = new Map([['d', handlerOf('d', (_pass, input) => held.body(input))]])
      const worker = new Worker({
        ...{ hub, handlers, queues: [], codec: createCodec({}), executorId: 'here', version: null },
        ...{ maxConcurrent: 1_000, maxBlockedMs: 300_000, onEvent, ...options },
      })
      onTestFinished(() => {
        held.endAll()
        return worker.shutdown(0)
      })
      await worker.launch()
      return worker
    },
    enqueue: async (queue, names, differing = {}) => {
      const runs = names.map((name) => newRun(name, JSON.stringify(name), { queue, ...differing }))
      const outcome = await hub.submit({ type: 'enqueue', commandId: `command-${commands++}`, runs })
      if (outcome.type !== 'accepted') throw new Error(`refused: ${outcome.type}`)
    },
  }
}
