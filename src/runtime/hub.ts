/**
 * What all engines and clients of this process that share one store object have in common: the committer, so that
 * their commands share commits; the waiters, so that their waits share queries; and the notices of what was committed.
 *
 * The store is opened by the first that comes and closed by the last that leaves.
 */

import type { EngineEvent } from '../core/engine-events.ts'
import { StoreClosedError } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { type Random, realRandom } from '../core/random.ts'
import { realScheduler, type Scheduler } from '../core/scheduler.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Command,
  EnqueueCommand,
  EnqueueOutcome,
  NewQueue,
  OutcomeOf,
  QueueChange,
  ReclaimOutcome,
  ReclaimRequest,
  SqlAccess,
  Store,
  SweepOutcome,
  SweepRequest,
  TransactOutcome,
  TransactRequest,
} from '../store/contract.ts'
import type { EncodedValue, QueueRecord } from '../store/records.ts'
import { announce } from './announcements.ts'
import { Caveats } from './caveats.ts'
import { Committer, type Trouble } from './committer/committer.ts'
import { detached } from './detached-context.ts'
import { LEASE_MS } from './lease-keeper.ts'
import type { Notice } from './notices.ts'
import { QueueView } from './queue-view.ts'
import { type Ended, endingWaiter, type SignalWait, signalWaiter, type Waiter } from './waiter.ts'

/** Real time, turns and randomness for all who share the hub. */
export interface HubOptions {
  readonly scheduler: Scheduler
  readonly random: Random
  /** Of the claims of its engines; 30 s if unset. Shorter ones are for tests that wait for leases in real time. */
  readonly leaseMs?: number
}

const REAL: HubOptions = { scheduler: realScheduler, random: realRandom }

const hubs = new WeakMap<Store, Hub>()

export class Hub {
  readonly store: Store
  readonly notices = new Emitter<Notice>()
  readonly events = new Emitter<EngineEvent>()
  /** Waits for runs to end. */
  readonly waiter: Waiter<string, Ended>
  /** Waits for signals of runs that this process has in hand. */
  readonly signals: Waiter<SignalWait, EncodedValue | null>
  /** The queues as this process knows them. */
  readonly queues: QueueView
  readonly scheduler: Scheduler
  readonly random: Random
  readonly leaseMs: number
  readonly #caveats: Caveats
  readonly #emit = (notice: Notice): void => this.notices.emit(notice)
  #committer: Committer | undefined
  #unwatch: (() => void) | undefined
  #users = 0
  /** Openings and closings, one after the other. */
  #gate: Promise<void> = Promise.resolve()

  private constructor(store: Store, options: HubOptions) {
    this.store = store
    this.scheduler = options.scheduler
    this.random = options.random
    this.leaseMs = options.leaseMs ?? LEASE_MS
    this.waiter = endingWaiter(store, options.scheduler)
    this.signals = signalWaiter(store, options.scheduler)
    this.queues = new QueueView(store)
    // A limit may be higher now, a queue no longer paused.
    this.queues.changes.on(() => this.#emit({ type: 'claimable' }))
    this.#caveats = new Caveats(this.queues, (event) => this.events.emit(event))
  }

  /** The hub of a store object; the first to ask decides on its options (a simulator comes before any engine). */
  static of(store: Store, options: HubOptions = REAL): Hub {
    const known = hubs.get(store)
    if (known !== undefined) return known
    const hub = new Hub(store, options)
    hubs.set(store, hub)
    return hub
  }

  /** Joins, and opens the store if nobody has yet. Leave again with `release`, also when this rejects. */
  acquire(): Promise<void> {
    this.#users += 1
    return this.#passGate(() => this.#open())
  }

  /** Leaves; the last one closes the store. */
  release(): Promise<void> {
    this.#users -= 1
    return this.#passGate(() => (this.#users === 0 ? this.#close() : Promise.resolve()))
  }

  get committer(): Committer {
    if (this.#committer === undefined) throw new StoreClosedError({ store: this.store.name })
    return this.#committer
  }

  /** Submits a command and announces what it did. */
  async submit<C extends Command>(command: C): Promise<OutcomeOf<C>> {
    const outcome = await this.committer.submit(command)
    announce(command, outcome, this.store.clock.now(), this.#emit)
    this.#caveats.look(command, outcome)
    return outcome
  }

  transact(request: TransactRequest, body: (sql: SqlAccess) => Promise<EncodedValue>): Promise<TransactOutcome> {
    return this.committer.transact(request, body)
  }

  /** Warns of starts in a transaction of their caller's, which is not committed yet: nobody else is told of them. */
  lookAtStarts(command: EnqueueCommand, outcome: EnqueueOutcome): void {
    this.#caveats.look(command, outcome)
  }

  claim(request: ClaimRequest): Promise<ClaimOutcome> {
    return this.committer.claim(request)
  }

  async reclaim(request: ReclaimRequest): Promise<ReclaimOutcome> {
    const outcome = await this.committer.reclaim(request)
    if (outcome.rippled) this.#emit({ type: 'changed' })
    // Those that have ended have left room to others of their queues.
    else if (outcome.runs.length > 0) this.#emit({ type: 'claimable' })
    for (const { id: runId, ending } of outcome.runs) if (ending !== null) this.#emit({ type: 'ended', runId, ending })
    return outcome
  }

  sweep(request: SweepRequest): Promise<SweepOutcome> {
    return this.committer.sweep(request)
  }

  async registerQueues(queues: readonly NewQueue[]): Promise<readonly QueueRecord[]> {
    const records = await this.committer.registerQueues(queues)
    this.queues.learn(records)
    return records
  }

  /** undefined: no such queue is registered. */
  async changeQueue(name: string, change: QueueChange): Promise<QueueRecord | undefined> {
    const record = await this.committer.changeQueue(name, change)
    if (record !== undefined) this.queues.learn([record], { configured: true })
    return record
  }

  /** True while commands, or questions on behalf of those who wait, are under way. */
  busy(): boolean {
    const committer = this.#committer
    // Bodies of transactions are functions of users', which may wait for anything.
    const moving = committer !== undefined && committer.pending() > committer.transactions
    return moving || this.waiter.busy || this.signals.busy
  }

  activity(): number {
    return this.#committer?.activity() ?? 0
  }

  async #open(): Promise<void> {
    if (this.#committer !== undefined) return
    await this.store.open()
    this.#committer = new Committer({
      store: this.store,
      scheduler: this.scheduler,
      random: this.random,
      onTrouble: (trouble) => this.#tellTrouble(trouble),
    })
    this.#unwatch = this.store.watch(() => {
      this.queues.outdate()
      this.#emit({ type: 'changed' })
    })
    this.waiter.start(this.notices)
    this.signals.start(this.notices)
  }

  async #close(): Promise<void> {
    if (this.#committer === undefined) return
    const committer = this.#committer
    this.#committer = undefined
    this.#unwatch?.()
    this.waiter.stop()
    this.signals.stop()
    await committer.close()
    await this.store.close()
  }

  #tellTrouble({ lane, error, phase }: Trouble): void {
    const { name } = this.store
    if (phase === 'over') this.events.emit({ type: 'store.recovered', store: name, doing: lane })
    else this.events.emit({ type: 'store.trouble', store: name, doing: lane, error })
  }

  #passGate(step: () => Promise<void>): Promise<void> {
    const passed = detached(() => this.#gate.then(step))
    this.#gate = passed.catch(() => {})
    return passed
  }
}
