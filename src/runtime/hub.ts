/**
 * What all engines and clients of this process that share one store object have in common: the committer, so that
 * their commands share commits; the waiter, so that their waits share queries; and the notices of what was committed.
 *
 * The store is opened by the first that comes and closed by the last that leaves.
 */

import type { EngineEvent } from '../core/engine-events.ts'
import { StoreClosedError } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { type Random, realRandom } from '../core/random.ts'
import { realScheduler, type Scheduler } from '../core/scheduler.ts'
import type {
  AcceptedRun,
  ClaimedRun,
  ClaimRequest,
  Command,
  FencedOutcome,
  Outcome,
  OutcomeOf,
  ReclaimedRun,
  ReclaimRequest,
  SettleCommand,
  Store,
} from '../store/contract.ts'
import { type Ending, isTerminal } from '../store/records.ts'
import { Committer, type Trouble } from './committer/committer.ts'
import { detached } from './detached-context.ts'
import { LEASE_MS } from './lease-keeper.ts'
import type { Notice } from './notices.ts'
import { Waiter } from './waiter.ts'

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
  readonly waiter: Waiter
  readonly scheduler: Scheduler
  readonly random: Random
  readonly leaseMs: number
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
    this.waiter = new Waiter(store, options.scheduler)
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
    this.#announce(command, outcome)
    return outcome
  }

  claim(request: ClaimRequest): Promise<readonly ClaimedRun[]> {
    return this.committer.claim(request)
  }

  async reclaim(request: ReclaimRequest): Promise<readonly ReclaimedRun[]> {
    const runs = await this.committer.reclaim(request)
    for (const run of runs) {
      if (run.ending === null) this.notices.emit({ type: 'claimable' })
      else this.#ended(run.id, run.ending)
    }
    return runs
  }

  /** True while commands are under way. */
  busy(): boolean {
    return (this.#committer?.pending() ?? 0) > 0
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
    this.#unwatch = this.store.watch(() => this.notices.emit({ type: 'changed' }))
    this.waiter.start(this.notices)
  }

  async #close(): Promise<void> {
    if (this.#committer === undefined) return
    const committer = this.#committer
    this.#committer = undefined
    this.#unwatch?.()
    this.waiter.stop()
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

  #announce(command: Command, outcome: Outcome): void {
    if (outcome.type === 'accepted') this.#accepted(outcome.runs)
    else if (command.type === 'settle' && outcome.type === 'applied') this.#settled(command, outcome)
    else if (outcome.type === 'requeued') this.notices.emit({ type: 'claimable' })
    else if (outcome.type === 'requested' && outcome.token !== null) {
      this.notices.emit({ type: 'cancelRequested', token: outcome.token })
    } else if (command.type === 'cancel' && outcome.type === 'cancelled') {
      this.#ended(command.runId, { status: 'CANCELLED', failure: { kind: 'cancelled', error: null } })
    }
  }

  #accepted(runs: readonly AcceptedRun[]): void {
    if (runs.some((run) => run.created && run.status === 'ENQUEUED')) this.notices.emit({ type: 'claimable' })
  }

  #settled(command: SettleCommand, outcome: FencedOutcome & { type: 'applied' }): void {
    if (outcome.ending !== null) this.#ended(command.runId, outcome.ending)
    // A resend is not told with what the run has ended: whoever waits has to ask.
    else if (isTerminal(outcome.status)) this.notices.emit({ type: 'changed' })
    else if (outcome.status === 'ENQUEUED') this.notices.emit({ type: 'claimable' })
    else if (outcome.status === 'WAITING' && command.settlement.type === 'suspend') {
      this.notices.emit({ type: 'due', dueAt: command.settlement.wakeAt })
    }
  }

  #ended(runId: string, ending: Ending): void {
    this.notices.emit({ type: 'ended', runId, ending })
  }
}
