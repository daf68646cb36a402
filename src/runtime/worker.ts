/**
 * The part of an engine that runs work: executor, dispatcher, lease keeper and reaper, launched and shut down together.
 *
 * `launch` and `shutdown` settle in any interleaving, also while the store is gone; after a shutdown nothing of the
 * worker is left: no timer, no thread, and, if the store could be reached, no claim. Its owner holds the hub open from
 * before the launch until after the shutdown.
 */

import type { Codec } from '../core/codec.ts'
import type { EngineEvent } from '../core/engine-events.ts'
import { EngineShutdownError } from '../core/errors.ts'
import { type Ids, timeOrderedIds } from '../core/ids.ts'
import type { NewClaim } from '../store/contract.ts'
import type { Claim } from './delivery.ts'
import { detached } from './detached-context.ts'
import { Dispatcher } from './dispatcher.ts'
import { Executor } from './executor.ts'
import type { Handler } from './handler.ts'
import { type ProcessIdentity, processIdentity } from './host.ts'
import type { Hub } from './hub.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { reaper } from './reaper.ts'
import { EMPTY_HISTORY } from './replay/history.ts'
import type { Service, ServiceFailure } from './service.ts'

export interface WorkerOptions {
  readonly hub: Hub
  readonly handlers: ReadonlyMap<string, Handler>
  readonly codec: Codec
  readonly executorId: string
  readonly maxConcurrent: number
  readonly maxBlockedMs: number
  readonly onEvent: (event: EngineEvent) => void
}

/** To hand back what the drain left and to sign off takes a few commits; a store that is gone is waited for no longer. */
const LEAVE_WITHIN_MS = 5_000

export class Worker {
  /** Never used by two processes, nor twice by one: executor id and incarnation. */
  readonly owner: string
  readonly #options: WorkerOptions
  readonly #identity: ProcessIdentity & { readonly owner: string }
  readonly #executor: Executor
  readonly #dispatcher: Dispatcher
  readonly #keeper: LeaseKeeper
  readonly #reaper: Service
  #launched: Promise<void> | undefined
  #running = false
  #stopped: Promise<void> | undefined
  /** The shutdown did not wait for a launch that hung: nothing may be started any more. */
  #launchAbandoned = false
  #leaveClock: (() => void) | undefined
  #stopListening: (() => void) | undefined
  readonly #ids: Ids

  constructor(options: WorkerOptions) {
    this.#options = options
    const { hub, handlers, codec, executorId, maxConcurrent, maxBlockedMs, onEvent } = options
    const { store, scheduler, random } = hub
    this.#ids = timeOrderedIds(store.clock, random)
    this.owner = `${executorId}:${this.#ids.next()}`
    this.#identity = { owner: this.owner, ...processIdentity() }
    const onError = ({ service, error }: ServiceFailure): void => onEvent({ type: 'service.failed', service, error })
    this.#keeper = new LeaseKeeper({
      store,
      committer: { renew: (claims, leaseMs) => hub.committer.renew(claims, leaseMs) },
      scheduler,
      random,
      leaseMs: hub.leaseMs,
      maxBlockedMs,
      onLost: (token) => this.#executor.claimLost(token),
      onCancelRequested: (token) => this.#executor.cancelRequested(token),
      onError,
    })
    this.#executor = new Executor({
      ...{ hub, scheduler, random, codec, handlers, maxConcurrent, onEvent },
      keeper: this.#keeper,
      onRoom: () => this.#dispatcher.roomFreed(),
    })
    this.#dispatcher = new Dispatcher({
      ...{ hub, scheduler, random, owner: this.owner, ids: this.#ids, leaseMs: hub.leaseMs, onError },
      executor: this.#executor,
      definitions: [...handlers.keys()],
    })
    this.#reaper = reaper({
      ...{ store, scheduler, random, onError },
      committer: {
        reclaim: (request) => hub.reclaim(request),
        registerProcess: (process) => hub.committer.registerProcess(process),
        removeProcesses: (owners) => hub.committer.removeProcesses(owners),
      },
      self: this.#identity,
      beforeRound: () => this.#keeper.renewOverdue(),
      onReclaimed: (runs) => {
        const from = [...new Set(runs.map(({ owner }) => owner ?? 'unknown'))]
        const dead = runs.filter(({ status }) => status === 'DEAD').length
        onEvent({ type: 'runs.reclaimed', count: runs.length, dead, from })
      },
    })
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
    if (!this.#running || this.#executor.reserve(1) === 0) return undefined
    return { token: this.#ids.next(), owner: this.owner, leaseMs: this.#options.hub.leaseMs }
  }

  begin(claim: Omit<Claim, 'history' | 'attempt' | 'cancelRequested'>): void {
    const { runId, definition, token, input, deadlineAt } = claim
    const history = EMPTY_HISTORY
    this.#executor.begin({ runId, definition, token, input, deadlineAt, history, attempt: 1, cancelRequested: false })
  }

  giveUp(): void {
    this.#executor.unreserve(1)
  }

  /** Takes over what dead processes and ended leases left, until nothing is left. */
  async recover(): Promise<void> {
    const { clock } = this.#options.hub.store
    for (;;) {
      const { dueAt } = await this.#reaper.tick()
      if (dueAt === null || dueAt > clock.now()) return
    }
  }

  async #launch(): Promise<void> {
    const { hub } = this.#options
    const { clock } = hub.store
    await hub.committer.registerProcess(this.#identity)
    if (this.#launchAbandoned) {
      await this.#signOff()
      throw new EngineShutdownError({})
    }
    this.#stopListening = hub.notices.on((notice) => {
      if (notice.type === 'cancelRequested') this.#executor.cancelRequested(notice.token)
      else if (notice.type === 'changed') void this.#lookForCancelRequests()
    })
    this.#leaveClock = clock.join({
      activity: () => hub.activity() + this.#services((service) => service.activity()),
      busy: () => hub.busy() || this.#executor.busy() || this.#services((service) => Number(service.busy())) > 0,
      runningUserCode: () => this.#executor.runningUserCode(),
    })
    this.#keeper.start()
    this.#reaper.start()
    this.#dispatcher.start()
    this.#running = true
  }

  async #shutdown(timeoutMs: number): Promise<void> {
    if (this.#launched === undefined) return
    // One that has failed has started nothing.
    this.#launchAbandoned = !(await this.#within(LEAVE_WITHIN_MS, this.#launched))
    if (!this.#running) return
    this.#running = false
    this.#executor.close()
    await this.#within(timeoutMs, Promise.all([this.#dispatcher.stop(), this.#executor.empty()]))
    this.#executor.handBack()
    await this.#within(LEAVE_WITHIN_MS, this.#leave())
    // If the store is gone, the leaving got stuck on the way; the services end as soon as it answers or is closed.
    this.#stopServices().catch(() => {})
    this.#stopListening?.()
    this.#leaveClock?.()
  }

  async #leave(): Promise<void> {
    await this.#executor.empty()
    await this.#stopServices()
    await this.#signOff()
  }

  async #stopServices(): Promise<void> {
    await Promise.all([this.#dispatcher.stop(), this.#reaper.stop(), this.#keeper.stop()])
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

  async #lookForCancelRequests(): Promise<void> {
    const { store } = this.#options.hub
    if (this.#executor.running === 0) return
    const requests = await store.cancelRequests(this.owner).catch(() => [])
    for (const { token } of requests) this.#executor.cancelRequested(token)
  }

  #services(measure: (service: { activity(): number; busy(): boolean }) => number): number {
    return measure(this.#keeper) + measure(this.#reaper) + measure(this.#dispatcher.service)
  }
}
