/**
 * What works in the background of an engine, put together: the executor of its runs, the dispatcher that claims them,
 * the keepers of their leases, the ears for requests to cancel them, the reaper and the retention sweeper.
 */
import type { Codec } from '../core/codec.ts'
import type { EngineEvent } from '../core/engine-events.ts'
import type { Ids } from '../core/ids.ts'
import type { ClaimableDefinition, ReclaimedRun } from '../store/contract.ts'
import type { ProcessRecord } from '../store/records.ts'
import { CancelRequests } from './cancel-requests.ts'
import { Dispatcher } from './dispatcher.ts'
import { Executor } from './executor.ts'
import type { Handler } from './handler.ts'
import type { Hub } from './hub.ts'
import { LeaseKeepers } from './lease-keepers.ts'
import { reaper } from './reaper.ts'
import { RetentionSweeper } from './retention-sweeper.ts'
import type { Service, ServiceFailure } from './service.ts'
import type { WorkerQueue } from './worker-queue.ts'

export interface ServicesOptions {
  readonly hub: Hub
  readonly handlers: ReadonlyMap<string, Handler>
  readonly queues: readonly WorkerQueue[]
  /** This process, as it is registered at launch. */
  readonly process: Omit<ProcessRecord, 'registeredAt'>
  readonly ids: Ids
  readonly codec: Codec
  readonly maxConcurrent: number
  readonly maxBlockedMs: number
  readonly onEvent: (event: EngineEvent) => void
}

export class Services {
  readonly executor: Executor
  readonly reaper: Service
  readonly #options: ServicesOptions
  readonly #dispatcher: Dispatcher
  readonly #keepers: LeaseKeepers
  readonly #sweeper: RetentionSweeper
  readonly #cancelRequests: CancelRequests

  constructor(options: ServicesOptions) {
    this.#options = options
    const { hub, handlers, process, codec, maxConcurrent, onEvent } = options
    const { scheduler, random } = hub
    this.#keepers = this.#makeKeepers()
    this.executor = new Executor({
      ...{ hub, scheduler, random, codec, handlers, maxConcurrent, onEvent },
      keeper: this.#keepers,
      onRoom: (freed) => this.#dispatcher.roomFreed(freed),
    })
    this.#dispatcher = this.#makeDispatcher()
    this.#cancelRequests = new CancelRequests({
      ...{ hub, owner: process.owner },
      hasAny: () => this.executor.running > 0,
      onRequest: (token) => this.executor.cancelRequested(token),
    })
    this.reaper = this.#makeReaper()
    this.#sweeper = this.#makeSweeper()
  }

  start(): void {
    this.#cancelRequests.start()
    this.#keepers.start()
    this.reaper.start()
    this.#sweeper.start()
    this.#dispatcher.start()
  }

  /** Claims nothing more; resolves when no claim is under way. */
  stopDispatching(): Promise<void> {
    return this.#dispatcher.stop()
  }

  async stop(): Promise<void> {
    const services = [this.#dispatcher, this.#sweeper, this.reaper, this.#keepers]
    await Promise.all(services.map((service) => service.stop()))
  }

  /** Hears of nothing any more. */
  stopListening(): void {
    this.#cancelRequests.stop()
  }

  /** As a MockClock must know. */
  busy(): boolean {
    return this.executor.busy() || this.#moving.some((each) => each.busy())
  }

  activity(): number {
    return this.#moving.reduce((sum, each) => sum + each.activity(), 0)
  }

  get #moving(): readonly { activity(): number; busy(): boolean }[] {
    return [this.#dispatcher.service, this.#keepers, this.#cancelRequests, this.reaper, this.#sweeper.service]
  }

  readonly #onError = ({ service, error }: ServiceFailure): void => {
    this.#options.onEvent({ type: 'service.failed', service, error })
  }

  #makeKeepers(): LeaseKeepers {
    const { hub, maxBlockedMs } = this.#options
    const { store, scheduler, random } = hub
    return new LeaseKeepers({
      ...{ store, scheduler, random, maxBlockedMs, onError: this.#onError },
      committer: { renew: (claims, leaseMs) => hub.committer.renew(claims, leaseMs) },
      onLost: (token) => this.executor.claimLost(token),
      onCancelRequested: (token) => this.executor.cancelRequested(token),
    })
  }

  #makeDispatcher(): Dispatcher {
    const { hub, handlers, queues, process, ids } = this.#options
    const { scheduler, random } = hub
    const { owner, version } = process
    return new Dispatcher({
      ...{ hub, scheduler, random, owner, version, ids, queues, onError: this.#onError },
      executor: this.executor,
      definitions: Array.from(handlers.values(), claimable),
    })
  }

  #makeReaper(): Service {
    const { hub, process } = this.#options
    const { store, scheduler, random } = hub
    return reaper({
      ...{ store, scheduler, random, onError: this.#onError },
      committer: {
        reclaim: (request) => hub.reclaim(request),
        registerProcess: (self) => hub.committer.registerProcess(self),
        removeProcesses: (owners) => hub.committer.removeProcesses(owners),
      },
      self: process,
      beforeRound: () => this.#keepers.renewOverdue(),
      onReclaimed: (runs) => this.#tellReclaimed(runs),
    })
  }

  #tellReclaimed(runs: readonly ReclaimedRun[]): void {
    const from = [...new Set(runs.map(({ owner }) => owner ?? 'unknown'))]
    const dead = runs.filter(({ status }) => status === 'DEAD').length
    this.#options.onEvent({ type: 'runs.reclaimed', count: runs.length, dead, from })
  }

  #makeSweeper(): RetentionSweeper {
    const { hub, handlers, onEvent } = this.#options
    const { scheduler, random } = hub
    return new RetentionSweeper({
      ...{ hub, clock: hub.store.clock, scheduler, random, onEvent, onError: this.#onError },
      definitions: Array.from(handlers.values(), ({ name, retention }) => ({ name, retention })),
    })
  }
}

function claimable({ name, kind, maxRecoveries, timeoutMs }: Handler): ClaimableDefinition {
  return { name, kind, maxRecoveries, timeoutMs }
}
