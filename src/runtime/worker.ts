/**
 * The part of an engine that runs work: executor, dispatcher, lease keepers, reaper and retention sweeper, launched and
 * shut down together.
 *
 * `launch` and `shutdown` settle in any interleaving, also while the store is gone; after a shutdown nothing of the
 * worker is left: no timer, no thread, and, if the store could be reached, no claim. Its owner holds the hub open from
 * before the launch until after the shutdown.
 */

import { EngineShutdownError } from '../core/errors.ts'
import { type Ids, timeOrderedIds } from '../core/ids.ts'
import type { NewClaim } from '../store/contract.ts'
import type { ProcessRecord } from '../store/records.ts'
import type { Claim } from './delivery.ts'
import { detached } from './detached-context.ts'
import { processIdentity } from './host.ts'
import { register, watchKnobs } from './registration.ts'
import { EMPTY_HISTORY } from './replay/history.ts'
import { Services, type ServicesOptions } from './services.ts'

export interface WorkerOptions extends Omit<ServicesOptions, 'process' | 'ids'> {
  readonly executorId: string
  /** Of the code: runs that it claims are bound to it. null: none. */
  readonly version: string | null
}

/** A run that was claimed in the commit that recorded it. */
type DirectClaim = Pick<Claim, 'runId' | 'definition' | 'token' | 'input' | 'deadlineAt'>

/** To hand back what the drain left and to sign off takes a few commits; a store that is gone is waited for no longer. */
const LEAVE_WITHIN_MS = 5_000

export class Worker {
  /** Never used by two processes, nor twice by one: executor id and incarnation. */
  readonly owner: string
  readonly #options: WorkerOptions
  readonly #process: Omit<ProcessRecord, 'registeredAt'>
  readonly #services: Services
  #launched: Promise<void> | undefined
  #running = false
  #stopped: Promise<void> | undefined
  /** The shutdown did not wait for a launch that hung: nothing may be started any more. */
  #launchAbandoned = false
  #leaveClock: (() => void) | undefined
  #stopWatching: (() => void) | undefined
  readonly #ids: Ids

  constructor(options: WorkerOptions) {
    this.#options = options
    const { hub, executorId } = options
    this.#ids = timeOrderedIds(hub.store.clock, hub.random)
    this.owner = `${executorId}:${this.#ids.next()}`
    this.#process = processOf(this.owner, options)
    this.#services = new Services({ ...options, process: this.#process, ids: this.#ids })
  }

  /** Begins to work. Idempotent; after a launch that failed it can be tried again. */
  launch(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(new EngineShutdownError({}))
    this.#launched ??= detached(() => this.#launch()).catch((error: unknown) => {
      this.#launched = undefined
      throw error
    })
    return this.#launched
  }

  /**
   * Waits up to `timeoutMs` for what runs, then hands it back: its runs keep their place, spend no attempt, and are
   * claimed by others at once.
   */
  shutdown(timeoutMs: number): Promise<void> {
    this.#stopped ??= detached(() => this.#shutdown(timeoutMs))
    return this.#stopped
  }

  /**
   * Reserves a slot for a run that is about to be started here; undefined if there is none, or the worker isn't
   * running. Follow with `begin` or `giveUp`.
   */
  reserve(): NewClaim | undefined {
    if (!this.#running || this.#services.executor.reserve(1) === 0) return undefined
    const { hub, version } = this.#options
    return { token: this.#ids.next(), owner: this.owner, leaseMs: hub.leaseMs, version }
  }

  begin({ runId, definition, token, input, deadlineAt }: DirectClaim): void {
    // In the order of the fields of a claim from a queue (dispatcher.ts), so that all claims have one shape.
    this.#services.executor.begin({
      runId,
      definition,
      queue: null,
      lane: '',
      token,
      leaseMs: this.#options.hub.leaseMs,
      epoch: 0,
      attempt: 1,
      input,
      history: EMPTY_HISTORY,
      deadlineAt,
      cancelRequested: false,
    })
  }

  giveUp(): void {
    this.#services.executor.unreserve(1)
  }

  /** Takes over what dead processes and ended leases left, until nothing is left. */
  async recover(): Promise<void> {
    const { clock } = this.#options.hub.store
    for (;;) {
      const { dueAt } = await this.#services.reaper.tick()
      if (dueAt === null || dueAt > clock.now()) return
    }
  }

  async #launch(): Promise<void> {
    const { hub, queues, onEvent } = this.#options
    await register(hub, { process: this.#process, queues }, onEvent)
    if (this.#launchAbandoned) {
      await this.#signOff()
      throw new EngineShutdownError({})
    }
    this.#leaveClock = hub.store.clock.join({
      activity: () => hub.activity() + this.#services.activity(),
      busy: () => hub.busy() || this.#services.busy(),
      runningUserCode: () => this.#services.executor.runningUserCode(),
    })
    this.#stopWatching = watchKnobs(hub, queues, onEvent)
    this.#services.start()
    this.#running = true
  }

  async #shutdown(timeoutMs: number): Promise<void> {
    if (this.#launched === undefined) return
    // One that has failed has started nothing.
    this.#launchAbandoned = !(await this.#within(LEAVE_WITHIN_MS, this.#launched))
    if (!this.#running) return
    this.#running = false
    this.#services.executor.close()
    await this.#within(timeoutMs, Promise.all([this.#services.stopDispatching(), this.#services.executor.empty()]))
    this.#services.executor.handBack()
    await this.#within(LEAVE_WITHIN_MS, this.#leave())
    // If the store is gone, the leaving got stuck on the way; the services end as soon as it answers or is closed.
    this.#services.stop().catch(() => {})
    this.#services.stopListening()
    this.#leaveClock?.()
    this.#stopWatching?.()
  }

  async #leave(): Promise<void> {
    await this.#services.executor.empty()
    await this.#services.stop()
    await this.#signOff()
  }

  #signOff(): Promise<void> {
    return this.#options.hub.committer.removeProcesses([this.owner])
  }

  /** False if the work has not been done within the bound of real time; whether it fails makes no difference. */
  async #within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
    const { scheduler } = this.#options.hub
    let timer: { cancel(): void } | undefined
    const late = new Promise<false>((resolve) => {
      timer = scheduler.after(timeoutMs, () => resolve(false))
    })
    const done = work.then(
      () => true as const,
      () => true as const,
    )
    const inTime = await Promise.race([done, late])
    timer?.cancel()
    return inTime
  }
}

function processOf(owner: string, { handlers, queues, version }: WorkerOptions): Omit<ProcessRecord, 'registeredAt'> {
  const listened = queues.filter((queue) => queue.listened).map(({ registration }) => registration.name)
  return { owner, ...processIdentity(), definitions: [...handlers.keys()], queues: listened, version }
}
